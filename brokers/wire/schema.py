"""Strict codecs for the requests and answers that are not on the hot path.

A message is a frozen dataclass whose annotations are wire types, in the order of the wire; `Since` marks the
fields that some versions lack. `decode` and `encode` compile a codec for each (class, version) on first use.

Reading is strict, because the bytes come from anybody: every length and count is compared with the bytes that are
left before anything is allocated, nothing may remain behind the last field, and a null where none is allowed, bad
UTF-8, an over-long varint or an unordered tag is `Malformed`. (The decoders of the Kafka client libraries trust
their broker; that is why none of them reads here. They are what the tests compare with.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from struct import Struct
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from brokers.wire.errors import NAMED_MAX, Malformed, MalformedReason
from brokers.wire.primitives import INT32_BYTES_MAX, append_unsigned, read_unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
LAST_VERSION: Final = 32767
_UINT32_MAX: Final = 2**32 - 1
_NULL: Final = -1


class Codec:
    """One type in one dialect: `read(bytes, position) -> (value, next position)`, and `write(out, value)`.

    `layout` is a number's format, so that neighbours in a message can be read and written together.
    """

    __slots__ = ("bytes_min", "layout", "read", "write")

    def __init__(
        self,
        read: Callable[[bytes, int], tuple[Any, int]],
        write: Callable[[bytearray, Any], None],
        bytes_min: int,
        layout: str = "",
    ) -> None:
        self.read = read
        self.write = write
        self.bytes_min = bytes_min
        self.layout = layout


# --- the types that messages are made of -----------------------------------------------------------------------

_FIXED: Final = {"boolean": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q"}
Boolean = Annotated[bool, "boolean"]
Int8 = Annotated[int, "int8"]
Int16 = Annotated[int, "int16"]
Int32 = Annotated[int, "int32"]
Int64 = Annotated[int, "int64"]
String = Annotated[str, "string"]
NullableString = Annotated[str | None, "string"]
Bytes = Annotated[bytes, "bytes"]


@dataclass(frozen=True, slots=True)
class Since:
    """Marks a field that only versions `first` to `until` carry; elsewhere it reads as its default."""

    first: int
    until: int = LAST_VERSION

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.until


# --- reading and writing a whole message -----------------------------------------------------------------------


def decode(message: type[T], version: int, body: bytes, *, flexible: bool = False) -> T:
    """Read `body` whole. Raises `Malformed`.

    Bytes behind a flexible version are ignored, as Kafka does: librdkafka 2.16 ends a Metadata 9 request for all topics
    with three bytes too many.
    """
    value: T
    value, end = codec(message, version, flexible).read(body, 0)
    if end != len(body) and not flexible:
        raise Malformed(MalformedReason.TRAILING_BYTES, f"{len(body) - end} bytes after {message.__name__}")
    return value


def encode(message: object, version: int, *, flexible: bool = False) -> bytes:
    """The bytes of `message`; fields that the version lacks are left out."""
    out = bytearray()
    codec(type(message), version, flexible).write(out, message)
    return bytes(out)


# As many as there are classes and versions.
_codecs: dict[tuple[type, int, bool], Codec] = {}


def codec(message: type, version: int, flexible: bool) -> Codec:
    """The codec of a message class in one version."""
    key = (message, version, flexible)
    found = _codecs.get(key)
    if found is None:
        found = _codecs[key] = _compile(message, version, flexible)
    return found


def _compile(message: type, version: int, flexible: bool) -> Codec:
    hints = get_type_hints(message, include_extras=True)
    parts = [(name, _codec_of(hint, version, flexible)) for name, hint in hints.items() if _carried(hint, version)]
    return _struct(message, parts, flexible)


def _carried(hint: Any, version: int) -> bool:
    return all(version in mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Since))


def _codec_of(hint: Any, version: int, flexible: bool) -> Codec:
    if get_origin(hint) is Annotated:
        base, kind = get_args(hint)[:2]
        if isinstance(kind, Since):
            return _codec_of(base, version, flexible)
        if kind in _FIXED:
            return _fixed(_FIXED[kind])
        return _text(kind, nullable=NoneType in get_args(base), flexible=flexible)
    if get_origin(hint) is tuple:
        return _array(_codec_of(get_args(hint)[0], version, flexible), nullable=False, flexible=flexible)
    members = [member for member in get_args(hint) if member is not NoneType]
    if members:
        element = get_args(members[0])[0]
        return _array(_codec_of(element, version, flexible), nullable=True, flexible=flexible)
    return codec(hint, version, flexible)


def _struct(message: type, parts: list[tuple[str, Codec]], flexible: bool) -> Codec:
    names = [name for name, _ in parts]
    runs = [_run(list(run)) for _, run in groupby(parts, key=_neighbours())]
    readers = [run.read for run in runs]
    writers = [run.write for run in runs]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        values: list[Any] = []
        for read_run in readers:
            found, at = read_run(data, at)
            values += found
        if flexible:
            at = skip_tags(data, at)
        return message(**dict(zip(names, values, strict=True))), at

    def write(out: bytearray, value: Any) -> None:
        for write_run in writers:
            write_run(out, value)
        if flexible:
            out.append(0)

    return Codec(read, write, max(1, sum(run.bytes_min for run in runs) + flexible))


def _neighbours() -> Callable[[tuple[str, Codec]], int]:
    """A key that is the same for numbers that follow each other, and different for each other field."""
    count = 0
    in_numbers = False

    def key(part: tuple[str, Codec]) -> int:
        nonlocal count, in_numbers
        count += not (in_numbers and part[1].layout)
        in_numbers = bool(part[1].layout)
        return count

    return key


def _run(parts: list[tuple[str, Codec]]) -> Codec:
    """Fields of a message that are read and written together: several numbers, or any other one."""
    if len(parts) == 1:
        ((name, part),) = parts
        return _single(name, part)
    names = [name for name, _ in parts]
    layout = Struct(">" + "".join(part.layout for _, part in parts))
    pick = attrgetter(*names)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = at + layout.size
        if end > len(data):
            raise truncated(layout.size, len(data) - at)
        return layout.unpack_from(data, at), end

    def write(out: bytearray, value: Any) -> None:
        out += layout.pack(*pick(value))

    return Codec(read, write, layout.size)


def _single(name: str, part: Codec) -> Codec:
    read_part, write_part, pick = part.read, part.write, attrgetter(name)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read_part(data, at)
        return (value,), at

    def write(out: bytearray, value: Any) -> None:
        write_part(out, pick(value))

    return Codec(read, write, part.bytes_min)


# --- scalars ---------------------------------------------------------------------------------------------------


def _fixed(letter: str) -> Codec:
    layout = Struct(">" + letter)
    unpack_from, pack, size = layout.unpack_from, layout.pack, layout.size

    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = at + size
        if end > len(data):
            raise truncated(size, len(data) - at)
        return unpack_from(data, at)[0], end

    def write(out: bytearray, value: Any) -> None:
        out += pack(value)

    return Codec(read, write, size, letter)


# --- lengths: fixed width in old dialects, a varint of length + 1 in flexible ones ------------------------------


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    try:
        value, end = read_unsigned(data, at)
    except ValueError:
        if len(data) - at < INT32_BYTES_MAX:
            raise truncated(1, 0) from None
    else:
        if value <= _UINT32_MAX:
            return value, end
    raise Malformed(MalformedReason.VARINT, f"longer than 32 bits at byte {at}")


def skip_tags(data: bytes, at: int) -> int:
    """Step over tagged fields, all unknown here; their tags must ascend."""
    count, at = read_varint(data, at)
    last = -1
    if count > len(data) - at:
        raise Malformed(MalformedReason.COUNT, f"{count} tagged fields in {len(data) - at} bytes")
    for _ in range(count):
        tag, at = read_varint(data, at)
        size, at = read_varint(data, at)
        if tag <= last:
            raise Malformed(MalformedReason.TAGS, f"tag {tag} after tag {last}")
        if size > len(data) - at:
            raise truncated(size, len(data) - at)
        last, at = tag, at + size
    return at


def _length(letter: str, flexible: bool, nullable: bool) -> Codec:
    """A length; -1 stands for null. Refuses other negative numbers, and null where it is not allowed."""
    plain = _fixed(letter)
    read_plain, allowed_min = plain.read, _NULL if nullable else 0

    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, end = read_plain(data, at)
        if value < allowed_min:
            raise _impossible(value, at)
        return value, end

    def read_flexible(data: bytes, at: int) -> tuple[Any, int]:
        value, end = read_varint(data, at)
        if value - 1 < allowed_min:
            raise _impossible(value - 1, at)
        return value - 1, end

    def write_flexible(out: bytearray, value: Any) -> None:
        append_unsigned(out, value + 1)

    return Codec(read_flexible, write_flexible, 1) if flexible else Codec(read, plain.write, plain.bytes_min)


def _impossible(length: int, at: int) -> Malformed:
    reason = MalformedReason.NULL if length == _NULL else MalformedReason.NEGATIVE_LENGTH
    return Malformed(reason, f"length {length} at byte {at}")


def _text(kind: str, *, nullable: bool, flexible: bool) -> Codec:
    length = _length("h" if kind == "string" else "i", flexible, nullable)
    read_length, is_string = length.read, kind == "string"

    def read(data: bytes, at: int) -> tuple[Any, int]:
        size, at = read_length(data, at)
        if size == _NULL:
            return None, at
        end = at + size
        if end > len(data):
            raise truncated(size, len(data) - at)
        return (text(data[at:end]) if is_string else data[at:end]), end

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            length.write(out, _NULL)
            return
        raw = value.encode() if is_string else value
        length.write(out, len(raw))
        out += raw

    return Codec(read, write, length.bytes_min)


def _array(element: Codec, *, nullable: bool, flexible: bool) -> Codec:
    length = _length("i", flexible, nullable)
    read_length, read_element, write_element = length.read, element.read, element.write
    element_bytes_min = element.bytes_min

    def read(data: bytes, at: int) -> tuple[Any, int]:
        count, at = read_length(data, at)
        if count == _NULL:
            return None, at
        if count * element_bytes_min > len(data) - at:
            raise Malformed(MalformedReason.COUNT, f"{count} elements in {len(data) - at} bytes")
        check_named(count)
        elements = []
        for _ in range(count):
            value, at = read_element(data, at)
            elements.append(value)
        return tuple(elements), at

    def write(out: bytearray, value: Any) -> None:
        length.write(out, _NULL if value is None else len(value))
        for item in value or ():
            write_element(out, item)

    return Codec(read, write, length.bytes_min)


def text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Malformed(MalformedReason.UTF8, str(error)) from None


def truncated(wanted: int, left: int) -> Malformed:
    return Malformed(MalformedReason.TRUNCATED, f"{wanted} bytes wanted, {left} left")


def check_count(count: int, bytes_min: int, left: int) -> None:
    """Raises `Malformed` for a count of elements that cannot all be there."""
    if count < 0 or count * bytes_min > left:
        raise Malformed(MalformedReason.COUNT, f"{count} elements in {left} bytes")


def check_named(count: int) -> None:
    """Raises `Malformed` where a request names more things than are worked off in one go."""
    if count > NAMED_MAX:
        raise Malformed(MalformedReason.COUNT, f"{count} elements, at most {NAMED_MAX} are taken")
