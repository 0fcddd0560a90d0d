"""YAML text to nodes that know their line and column.

Only the shape is read here. No scalar is given a type: `no`, `012`, `1e3` and `1:30` stay text until the key that
they belong to says what they are. Dangerous or ambiguous YAML is refused: duplicate keys, anchors, aliases
and merge keys (a setting then stands where it is used, and a few lines cannot expand to gigabytes), tags, several
documents, deep nesting, and files that are too large to have been written by hand.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from workloads.errors import SpecError

FILE_BYTES_MAX = 1_000_000
NODES_MAX = 20_000  # the largest sensible file has some hundreds
DEPTH_MAX = 8  # the format itself needs 5
SHOWN_CHARACTERS_MAX = 40

_UTF8_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node starts; line and column count from 1."""

    file: str
    line: int
    column: int

    def error(self, message: str) -> SpecError:
        return SpecError(self.file, self.line, self.column, message)


@dataclass(frozen=True, slots=True)
class Scalar:
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys are unique, and in the file's order."""

    entries: dict[str, Entry]
    place: Place


Node = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True)
class Entry:
    key_place: Place
    value: Node


def read_file(path: Path) -> Node:
    """The file's one document; raises SpecError for whatever keeps it from being read."""
    try:
        if not stat.S_ISREG(mode := path.stat().st_mode) and not stat.S_ISDIR(mode):
            raise SpecError(str(path), None, None, "cannot be read: it is no regular file")  # a pipe may never end
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SpecError(str(path), None, None, f"cannot be read: {reason}") from error
    return read_bytes(content, str(path))


def read_bytes(content: bytes, file: str) -> Node:
    if len(content) > FILE_BYTES_MAX:
        raise SpecError(file, None, None, f"is larger than {FILE_BYTES_MAX:,} bytes, the most that is read")
    for bom, encoding in _OTHER_BOMS.items():
        if content.startswith(bom):
            raise SpecError(file, 1, 1, f"is {encoding}; save it as UTF-8")
    content = content.removeprefix(_UTF8_BOM)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        place = _place_of_offset(file, content[: error.start].decode())
        raise place.error(f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8") from error
    return read_text(text, file)


def read_text(text: str, file: str) -> Node:
    return _Composer(text, file).document()


def shown(text: str) -> str:
    """Text of a user's file as a message shows it: quoted, on one line, control characters escaped, not too long."""
    if len(text) > SHOWN_CHARACTERS_MAX:
        return repr(text[:SHOWN_CHARACTERS_MAX])[:-1] + "...'"
    return repr(text)


def _place_of_offset(file: str, before: str) -> Place:
    lines = before.split("\n")
    return Place(file, len(lines), len(lines[-1]) + 1)


class _Mark(Protocol):
    """A place as the parser gives it: from 0."""

    line: int
    column: int


class _Composer:
    """Parser events to nodes, within the bounds above."""

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._text = text
        self._events = self._parse()
        self._nodes = 0

    def document(self) -> Node:
        next(self._events)  # the stream's start
        start = next(self._events)
        if isinstance(start, StreamEndEvent):
            raise SpecError(self._file, 1, 1, "is empty")
        root = self._node(next(self._events), depth=1)
        next(self._events)  # the document's end
        after = next(self._events)
        if isinstance(after, DocumentStartEvent):
            raise self._place(after).error("a second document starts here; a file holds one")
        return root

    def _parse(self) -> Iterator[Event]:
        """The parser's events; its errors as ours."""
        loader = None
        try:
            loader = yaml.SafeLoader(self._text)
            while loader.check_event():
                yield loader.get_event()  # type: ignore[no-untyped-call]
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from error
        except yaml.reader.ReaderError as error:
            place = _place_of_offset(self._file, self._text[: error.position])
            raise place.error(f"the character {self._text[error.position]!a} is not allowed in YAML") from error
        except (ValueError, OverflowError) as error:  # the parser hands digits of escapes and directives on unchecked
            assert loader is not None, "only the scanner reads numbers"
            raise self._place_of(loader.get_mark()).error("is not valid YAML: a number out of range") from error

    def _syntax_error(self, error: yaml.MarkedYAMLError) -> SpecError:
        mark = error.problem_mark or error.context_mark
        assert mark is not None, "the parser marks its errors"
        problem = " ".join((error.problem or error.context or "cannot be parsed").split())
        if "'\\t'" in problem:
            problem = "a tab; YAML is indented with spaces"
        return self._place_of(mark).error(f"is not valid YAML: {problem}")

    def _node(self, event: Event, depth: int) -> Node:
        self._refuse_what_is_not_plain(event, depth)
        if isinstance(event, ScalarEvent):
            return Scalar(event.value, self._place(event))
        if isinstance(event, MappingStartEvent):
            return self._mapping(event, depth)
        return Sequence(tuple(self._children(depth)), self._place(event))

    def _children(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), SequenceEndEvent):
            yield self._node(event, depth + 1)

    def _mapping(self, start: Event, depth: int) -> Mapping:
        entries: dict[str, Entry] = {}
        while isinstance(event := next(self._events), NodeEvent):
            key = self._node(event, depth + 1)
            if not isinstance(key, Scalar):
                raise key.place.error("a key must be one word")
            if key.text == "<<":
                raise key.place.error("merge keys are not read; write the keys out")
            if key.text in entries:
                first = entries[key.text].key_place
                raise key.place.error(f"duplicate key {shown(key.text)}; the first is on line {first.line}")
            entries[key.text] = Entry(key.place, self._node(next(self._events), depth + 1))
        return Mapping(entries, self._place(start))

    def _refuse_what_is_not_plain(self, event: Event, depth: int) -> None:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise self._place(event).error(f"more than {NODES_MAX:,} values; this is no file of experiments")
        if depth > DEPTH_MAX:
            raise self._place(event).error(f"nested deeper than {DEPTH_MAX} levels")
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            raise self._place(event).error("anchors and aliases are not read; write the value out where it is used")
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag is not None:
            raise self._place(event).error(f"tags are not read ({shown(event.tag)}); each key says what its value is")

    def _place(self, event: Event) -> Place:
        assert event.start_mark is not None, "every event of the parser carries its marks"
        return self._place_of(event.start_mark)

    def _place_of(self, mark: _Mark) -> Place:
        return Place(self._file, mark.line + 1, mark.column + 1)
