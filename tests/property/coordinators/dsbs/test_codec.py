"""What is written is read back; what is read is never more than it claims, and never an unexpected error."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from coordinators.dsbs.tables.codec import Malformed, decoded, encoded, row_from_json
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
from coordinators.dsbs.tables.rows import Row
from tests.property.coordinators.dsbs.rows import members, offsets, rows, table_rows

numbers = st.integers(0, 2**64 - 1)
buckets = st.integers(0, 1023)
pushed = st.lists(table_rows, max_size=3).map(tuple)
copied = st.lists(offsets, max_size=3).map(tuple)
bodies: st.SearchStrategy[Body] = st.one_of(
    st.builds(Heartbeat, numbers),
    st.builds(Here, numbers),
    st.builds(Push, pushed, numbers, numbers),
    st.builds(Known, numbers, pushed),
    st.builds(Digest, st.dictionaries(buckets, numbers, max_size=5)),
    st.builds(Repair, pushed, st.lists(buckets, max_size=5).map(tuple), st.booleans()),
    st.builds(Taken, st.text(max_size=50), st.booleans()),
    st.builds(Copy, copied, numbers),
    st.builds(Kept, numbers),
    st.builds(AskOffsets, st.text(max_size=20), numbers),
    st.builds(TellOffsets, copied, numbers),
)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["m", "t", "l", "o"]),
    lambda inner: st.lists(inner, max_size=10) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=30,
)


@given(rows.filter(lambda row: row.fault() is None))
def test_a_row_is_read_back_as_it_was_written(row: Row) -> None:
    assert decoded(encoded(row).encode()) == row


@given(members, numbers, bodies)
def test_a_message_is_read_back_as_it_was_written(sender: object, sequence: int, body: Body) -> None:
    envelope = Envelope("here", sender, sequence, body)  # type: ignore[arg-type]
    try:
        found = decode(encode(envelope))
    except Malformed:  # a row of it that cannot be; the codec must say so and nothing else
        return
    assert found == envelope


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_malformed_and_nothing_worse(content: bytes) -> None:
    with suppress(Malformed):
        decode(content)


@given(anything)
def test_json_that_is_no_row_is_malformed_and_nothing_worse(found: object) -> None:
    with suppress(Malformed):
        row_from_json(found)


@given(rows.filter(lambda row: row.fault() is None), st.data())
def test_a_row_with_one_field_of_another_type_is_refused_or_equal(row: Row, data: st.DataObject) -> None:
    written = json.loads(encoded(row))
    place = data.draw(st.integers(1, len(written) - 1))
    written[place] = data.draw(st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.integers())
    with suppress(Malformed):
        assert json.loads(encoded(row_from_json(written))) == written
