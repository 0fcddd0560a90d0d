"""The bytes of rows and messages. Tables are compared by hashes of these bytes, ties between rows are broken by them,
and journals of earlier versions hold them: who changes one changes all three."""

from __future__ import annotations

import pytest

from coordinators.dsbs.tables.codec import decoded, encoded, row_hash
from coordinators.dsbs.tables.messages import (
    AskOffsets,
    Body,
    Copy,
    Digest,
    Envelope,
    Heartbeat,
    Here,
    Kept,
    Known,
    Push,
    Repair,
    Taken,
    TellOffsets,
    decode,
    encode,
)
from coordinators.dsbs.tables.rows import LeaderRow, MemberRow, OffsetRow, Row, Status, TopicRow
from coordinators.dsbs.tables.tables import Table
from coordinators.model import DEFAULT_SETTINGS, Broker, TopicSettings

MEMBER = MemberRow(Broker(1, "höst", 9092, 9192), 77, 3, Status.SUSPECT)
TOPIC = TopicRow("orders", 2, 1, ((1, 2), (2, 1)), DEFAULT_SETTINGS)
SET = TopicRow("set", 1, 3, ((3,),), TopicSettings(5, 100, None, 2))
GONE = TopicRow("gone", 4, 1, (), DEFAULT_SETTINGS, deleted=True)
LEADER = LeaderRow("orders", 0, 2, 1, 5, 1, 2, (2, 1))
OFFSET = OffsetRow("grüppe", "orders", 0, 2, 1_700_000_000_000, 42, 5, 'a "note"')
SENDER = r'["m",1,"h\u00f6st",9092,9192,77,3,1]'
LED = '["l","orders",0,2,1,5,1,2,[2,1]]'
KEPT = r'["o","gr\u00fcppe","orders",0,2,1700000000000,42,5,"a \"note\""]'


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (MEMBER, SENDER),
        (TOPIC, '["t","orders",2,1,0,[[1,2],[2,1]],0,null,null]'),
        (SET, '["t","set",1,3,0,[[3]],5,100,null,2]'),
        (GONE, '["t","gone",4,1,1,[],0,null,null]'),
        (LEADER, LED),
        (OFFSET, KEPT),
    ],
)
def test_a_row_is_encoded_as_ever(row: Row, text: str) -> None:
    assert encoded(row) == text
    assert decoded(text.encode()) == row


def test_hashes_are_as_ever() -> None:
    assert f"{row_hash(LEADER):016x}" == "13c576c51dd2e926"
    assert f"{Table([MEMBER, TOPIC, SET, GONE, LEADER]).hash:016x}" == "3872b463e205a79d"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (Heartbeat(2**64 - 1), '"heartbeat",18446744073709551615'),
        (Here(0), '"here",0'),
        (Push((LEADER,), 3, 1), f'"push",[{LED}],3,1'),
        (Known(3, (LEADER,)), f'"known",3,[{LED}]'),
        (Digest({0: 7, 1023: 8}), '"digest",[0,7,1023,8]'),
        (Repair((LEADER,), (1, 2), more=True), f'"repair",[{LED}],[1,2],1'),
        (Taken("by another", certain=False), '"taken","by another",0'),
        (Copy((OFFSET,), 9), f'"copy",[{KEPT}],9'),
        (Kept(9), '"kept",9'),
        (AskOffsets("g", 4), '"ask_offsets","g",4'),
        (TellOffsets((OFFSET,), 4), f'"tell_offsets",[{KEPT}],4'),
    ],
)
def test_a_message_is_encoded_as_ever(body: Body, text: str) -> None:
    content = f'["lab",{SENDER},12,{text}]'.encode()
    assert encode(Envelope("lab", MEMBER, 12, body)) == content
    assert decode(content) == Envelope("lab", MEMBER, 12, body)
