from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.workloads.spec.files import FILE, written
from workloads.errors import SpecError
from workloads.spec import yaml_source
from workloads.spec.yaml_source import Mapping, Node, Scalar, Sequence, read_bytes, read_file, read_text


def refusal(content: str | bytes) -> SpecError:
    with pytest.raises(SpecError) as caught:
        read_bytes(content if isinstance(content, bytes) else content.encode(), FILE)
    assert "\n" not in str(caught.value)
    return caught.value


def plain(node: Node) -> object:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return {key: plain(entry.value) for key, entry in node.entries.items()}


@pytest.mark.parametrize(
    "text", ["no", "on", "yes", "off", "true", "~", "null", "012", "0x1f", "1e3", "1:30", ".nan", ".inf", "2017-01-01"]
)
def test_no_scalar_is_given_a_type(text: str) -> None:
    assert plain(read_text(f"key: {text}", FILE)) == {"key": text}


@pytest.mark.parametrize(
    "text", ["key: value", "'key': \"value\"", "{key: value}", "--- \nkey: value\n...\n", "key:\n  value"]
)
def test_styles_of_writing_make_no_difference(text: str) -> None:
    assert plain(read_text(text, FILE)) == {"key": "value"}


def test_nodes_know_the_line_and_column_where_they_start() -> None:
    root = read_text("# a comment\ncluster:\n  brokers: [3,\n    4]\n", FILE)
    assert isinstance(root, Mapping)
    assert (root.place.line, root.place.column) == (2, 1)
    cluster = root.entries["cluster"].value
    assert isinstance(cluster, Mapping)
    brokers = cluster.entries["brokers"]
    assert (brokers.key_place.line, brokers.key_place.column) == (3, 3)
    assert isinstance(brokers.value, Sequence)
    assert [(item.place.line, item.place.column) for item in brokers.value.items] == [(3, 13), (4, 5)]


HAZARDS: dict[str, tuple[str | bytes, int | None, int | None, str]] = {
    "an empty file": ("", 1, 1, "is empty"),
    "only comments": ("# nothing\n", 1, 1, "is empty"),
    "a duplicate key": ("a: 1\nb: 2\na: 3\n", 3, 1, "duplicate key 'a'; the first is on line 1"),
    "a duplicate key that is quoted": ("{a: 1, 'a': 2}", 1, 8, "duplicate key 'a'"),
    "a key that is a list": ("? [a]\n: 1\n", 1, 3, "a key must be one word"),
    "an anchor": ("a: &x 1\n", 1, 4, "anchors and aliases are not read"),
    "an anchor on a key": ("&x a: 1\n", 1, 1, "anchors and aliases are not read"),
    "an anchor on a mapping": ("a: &x {b: 1}\n", 1, 4, "anchors and aliases are not read"),
    "an alias": ("a: *x\n", 1, 4, "anchors and aliases are not read"),
    "an alias bomb": (
        "a: &a [x, x, x]\n"
        + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        1,
        4,
        "anchors and aliases are not read",
    ),
    "a merge key": ("a: {<<: {b: 1}}\n", 1, 5, "merge keys are not read"),
    "a merge-key bomb": ("<<: [{a: 1}, {a: 1}]\n", 1, 1, "merge keys are not read"),
    "a tag": ("a: !!int 3\n", 1, 4, "tags are not read"),
    "a tag on a list": ("a: !!set [3]\n", 1, 4, "tags are not read"),
    "an object of Python": ("!!python/object/apply:os.system [ls]\n", 1, 1, "tags are not read"),
    "a tag that says nothing": ("a: ! 3\n", 1, 4, "tags are not read"),
    "two documents": ("a: 1\n---\nb: 2\n", 2, 1, "a second document starts here"),
    "a tab as indentation": ("a:\n\tb: 1\n", 2, 1, "a tab; YAML is indented with spaces"),
    "a colon too many": ("a: b: c\n", 1, 5, "is not valid YAML: mapping values are not allowed here"),
    "a bracket left open": ("a: [1, 2\nb: 3\n", 2, 2, "is not valid YAML"),
    "a quote left open": ("a: 'b\n", 2, 1, "is not valid YAML"),
    "NUL": ("a: 1\nb: \0\n", 2, 4, r"the character '\x00' is not allowed"),
    "an escape character": ("a: \x1b[31m\n", 1, 4, r"the character '\x1b' is not allowed"),
    "invalid UTF-8": (b"a: 1\nb: \xe9\n", 2, 4, "byte 0xe9 is not UTF-8"),
    "invalid UTF-8 after a BOM": (b"\xef\xbb\xbfb: \xe9\n", 1, 4, "byte 0xe9 is not UTF-8"),
    "UTF-16, little end first": (
        "a: 1".encode("utf-16-le").join([b"\xff\xfe", b""]),
        1,
        1,
        "is UTF-16; save it as UTF-8",
    ),
    "UTF-16, big end first": ("a: 1".encode("utf-16-be").join([b"\xfe\xff", b""]), 1, 1, "is UTF-16; save it as UTF-8"),
    "UTF-32": ("a: 1".encode("utf-32"), 1, 1, "is UTF-32; save it as UTF-8"),
    "UTF-16 that does not say so": ("a: 1".encode("utf-16-le"), 1, 2, r"the character '\x00' is not allowed"),
    "an escape beyond Unicode": ('a: "\\UFFFFFFFF"\n', 1, 7, "is not valid YAML"),
    "a directive with an endless number": ("%YAML 1." + "9" * 5_000 + "\n---\na: 1\n", 1, 9, "is not valid YAML"),
    "an unknown tag handle": ("a: !x!y 1\n", 1, 4, "is not valid YAML"),
    "lists in lists": ("[" * 9 + "]" * 9, 1, 9, "nested deeper than 8 levels"),
    "a hundred thousand lists in lists": ("[" * 100_000, 1, 9, "nested deeper than 8 levels"),
    "a hundred thousand dashes": ("- " * 100_000, 1, 17, "nested deeper than 8 levels"),
    "a hundred thousand mappings in mappings": ("{a: " * 100_000, 1, 30, "nested deeper than 8 levels"),
    "more values than anyone writes": ("[" + "a," * 30_000 + "]", 1, 2 + 2 * 19_999, "more than 20,000 values"),
    "too many bytes": (b"#" * 1_000_001, None, None, "is larger than 1,000,000 bytes"),
}


@pytest.mark.parametrize("hazard", HAZARDS)
def test_each_hazard_of_yaml_is_refused_where_it_stands(hazard: str) -> None:
    content, line, column, message = HAZARDS[hazard]
    error = refusal(content)
    assert message in error.message
    assert (error.line, error.column) == (line, column)


def test_a_byte_order_mark_of_utf_8_is_taken_and_does_not_shift_columns() -> None:
    root = read_bytes("\ufeffkey: value".encode(), FILE)
    assert plain(root) == {"key": "value"}
    assert root.place.column == 1


def test_nothing_of_the_environment_is_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "told")
    assert plain(read_text("a: ${SECRET} $SECRET", FILE)) == {"a": "${SECRET} $SECRET"}


def test_a_file_of_a_hundred_megabytes_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE
    with path.open("wb") as file:
        file.truncate(100_000_000)
    given: list[int] = []
    monkeypatch.setattr(yaml_source, "read_bytes", lambda content, name: given.append(len(content)))
    read_file(path)
    assert given == [yaml_source.FILE_BYTES_MAX + 1]


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    start = b"a: 1\n"
    content = start + b"#" * (yaml_source.FILE_BYTES_MAX - len(start))
    assert plain(read_file(written(tmp_path, content))) == {"a": "1"}


@pytest.mark.parametrize(
    ("name", "reason"), [("absent.yaml", "No such file"), (".", "Is a directory"), ("nul\0.yaml", "null byte")]
)
def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(SpecError, match=f"cannot be read: .*{reason}") as caught:
        read_file(tmp_path / name)
    assert (caught.value.line, caught.value.column) == (None, None)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(SpecError, match=f"{path}: cannot be read: it is no regular file"):
            read_file(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, b"a: 1")
    path.chmod(0)
    with pytest.raises(SpecError, match="Permission denied"):
        read_file(path)


def test_a_message_shows_long_and_strange_text_short_and_escaped() -> None:
    assert yaml_source.shown("x" * 100) == "'" + "x" * 40 + "...'"
    assert yaml_source.shown("a\x1b\n\ud800") == r"'a\x1b\n\ud800'"
