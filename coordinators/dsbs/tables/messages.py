"""What brokers say to each other, and its bytes. Pure.

Every message is in an envelope that introduces its sender: the cluster, the sender's own row, and a number that grows
with each message of one session, so that a message heard before is no sign of life.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from coordinators.dsbs.tables.codec import Malformed, parsed, row_from_json, row_to_json
from coordinators.dsbs.tables.rows import LeaderRow, MemberRow, OffsetRow, Row, TopicRow
from coordinators.dsbs.tables.tables import BUCKETS
from coordinators.strict_json import encoded, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinators.dsbs.tables.rows import TableRow

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
ROWS_PER_MESSAGE_MAX: Final = 10_000
CLUSTER_CHARACTERS_MAX: Final = 100
TEXT_CHARACTERS_MAX: Final = 1000
NUMBER_MAX: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Are you there, and are our tables the same?"""

    table_hash: int
    kind: ClassVar[str] = "heartbeat"


@dataclass(frozen=True, slots=True)
class Here:
    """The answer to a heartbeat."""

    table_hash: int
    kind: ClassVar[str] = "here"


@dataclass(frozen=True, slots=True)
class Push:
    """Rows that changed. Whoever learns something from it tells `origin`, naming `token`, unless that is 0."""

    rows: tuple[TableRow, ...]
    token: int = 0
    origin: int = 0
    kind: ClassVar[str] = "push"


@dataclass(frozen=True, slots=True)
class Known:
    """The rows pushed under `token` are in the sender's table, or were outranked there by `rows`."""

    token: int
    rows: tuple[TableRow, ...]
    kind: ClassVar[str] = "known"


@dataclass(frozen=True, slots=True)
class Digest:
    """Bucket -> hash of its rows: what the sender's tables are, in short. Asks for what differs."""

    buckets: Mapping[int, int]
    kind: ClassVar[str] = "digest"


@dataclass(frozen=True, slots=True)
class Repair:
    """All rows of the sender in `buckets`; `more` buckets differ. The receiver sends back what it holds beyond them."""

    rows: tuple[TableRow, ...]
    buckets: tuple[int, ...]
    more: bool
    kind: ClassVar[str] = "repair"


@dataclass(frozen=True, slots=True)
class Taken:
    """Another live broker has the sender's id. `certain`: it was heard of a moment ago, else it is being asked."""

    reason: str
    certain: bool
    kind: ClassVar[str] = "taken"


@dataclass(frozen=True, slots=True)
class Copy:
    """Offsets that a group committed, for the brokers next in succession."""

    rows: tuple[OffsetRow, ...]
    token: int
    kind: ClassVar[str] = "copy"


@dataclass(frozen=True, slots=True)
class Kept:
    """The copies under `token` are on the sender's disk."""

    token: int
    kind: ClassVar[str] = "kept"


@dataclass(frozen=True, slots=True)
class AskOffsets:
    """What of this group's offsets do you hold? Asked by the broker that has come to serve it."""

    group: str
    token: int
    kind: ClassVar[str] = "ask_offsets"


@dataclass(frozen=True, slots=True)
class TellOffsets:
    rows: tuple[OffsetRow, ...]
    token: int
    kind: ClassVar[str] = "tell_offsets"


Body = Heartbeat | Here | Push | Known | Digest | Repair | Taken | Copy | Kept | AskOffsets | TellOffsets


@dataclass(frozen=True, slots=True)
class Envelope:
    cluster: str
    sender: MemberRow
    sequence: int
    body: Body


def encode(envelope: Envelope) -> bytes:
    body = envelope.body
    head = [envelope.cluster, row_to_json(envelope.sender), envelope.sequence, body.kind]
    return encoded([*head, *_fields(body)])


def _fields(body: Body) -> list[Any]:
    match body:
        case Heartbeat(table_hash) | Here(table_hash):
            return [table_hash]
        case Push(rows, token, origin):
            return [_rows_to_json(rows), token, origin]
        case Known(token, rows):
            return [token, _rows_to_json(rows)]
        case Digest(buckets):
            return [[number for pair in buckets.items() for number in pair]]
        case Repair(rows, buckets, more):
            return [_rows_to_json(rows), buckets, int(more)]
        case Taken(reason, certain):
            return [reason, int(certain)]
        case Copy(rows, token) | TellOffsets(rows, token):
            return [_rows_to_json(rows), token]
        case Kept(token):
            return [token]
        case AskOffsets(group, token):
            return [group, token]


def _rows_to_json(rows: Sequence[Row]) -> list[Any]:
    return [row_to_json(row) for row in rows]


def decode(content: bytes) -> Envelope:
    """Raises `Malformed`: nothing of a message that is wrong in one place is used."""
    if len(content) > MESSAGE_BYTES_MAX:
        raise Malformed(f"a message has at most {MESSAGE_BYTES_MAX} bytes, not {len(content)}")
    match parsed(content):
        case [str(cluster), list(sender), int(sequence), str(kind), *rest] if len(cluster) <= CLUSTER_CHARACTERS_MAX:
            row = row_from_json(sender)
            if not isinstance(row, MemberRow):
                raise Malformed("the sender's row is not a broker's")
            return Envelope(cluster, row, _number(sequence), _body(kind, rest))
    raise Malformed(f"no message: {content[:100]!r}")


def _body(kind: str, rest: list[Any]) -> Body:
    match kind, rest:
        case "heartbeat", [found]:
            return Heartbeat(_number(found))
        case "here", [found]:
            return Here(_number(found))
        case "push", [rows, token, origin]:
            return Push(_table_rows(rows), _number(token), _number(origin))
        case "known", [token, rows]:
            return Known(_number(token), _table_rows(rows))
        case "digest", [list(flat)] if len(flat) <= 2 * BUCKETS and len(flat) % 2 == 0:
            return Digest(dict(zip(map(_bucket, flat[::2]), map(_number, flat[1::2]), strict=True)))
        case "repair", [rows, list(buckets), more] if len(buckets) <= BUCKETS:
            return Repair(_table_rows(rows), tuple(map(_bucket, buckets)), bool(_number(more)))
        case "taken", [str(reason), certain]:
            return Taken(reason[:TEXT_CHARACTERS_MAX], bool(_number(certain)))
        case "copy", [rows, token]:
            return Copy(_offset_rows(rows), _number(token))
        case "kept", [token]:
            return Kept(_number(token))
        case "ask_offsets", [str(group), token]:
            return AskOffsets(group, _number(token))
        case "tell_offsets", [rows, token]:
            return TellOffsets(_offset_rows(rows), _number(token))
    raise Malformed(f"no message of kind {kind[:TEXT_CHARACTERS_MAX]!r}")


def _number(found: object) -> int:
    if type(found) is not int or not 0 <= found <= NUMBER_MAX:
        raise Malformed(f"not a whole number up to {NUMBER_MAX}: {shown(found)}")
    return found


def _bucket(found: object) -> int:
    number = _number(found)
    if number >= BUCKETS:
        raise Malformed(f"there are {BUCKETS} buckets, and not {number}")
    return number


def _rows(found: object) -> list[Row]:
    if not isinstance(found, list) or len(found) > ROWS_PER_MESSAGE_MAX:
        raise Malformed(f"a message carries a list of at most {ROWS_PER_MESSAGE_MAX} rows")
    return [row_from_json(row) for row in found]


def _table_rows(found: object) -> tuple[TableRow, ...]:
    rows = _rows(found)
    if any(isinstance(row, OffsetRow) for row in rows):
        raise Malformed("offsets are not among the rows of the tables")
    return tuple(row for row in rows if isinstance(row, MemberRow | TopicRow | LeaderRow))


def _offset_rows(found: object) -> tuple[OffsetRow, ...]:
    rows = _rows(found)
    kept = tuple(row for row in rows if isinstance(row, OffsetRow))
    if len(kept) != len(rows):
        raise Malformed("rows of the tables are not among the offsets")
    return kept
