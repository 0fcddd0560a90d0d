"""Whatever the file holds, reading it gives a Spec or a SpecError of one line: nothing else, and in bounded time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.workloads.spec.files import FILE, text
from workloads.errors import PlanError, SpecError
from workloads.spec.plan import resolve
from workloads.spec.reader import read
from workloads.spec.spec import Spec
from workloads.spec.yaml_source import FILE_BYTES_MAX, read_bytes

WHOLE = text()
PIECES = sorted({*WHOLE.replace("{", " { ").replace("}", " } ").split(), *"{}[]:,-?&*!|>'\"%@`#~<\\\t\n\r\0\x85\u2028"})
ODD = [
    "no",
    "1e3",
    "012",
    "1:30",
    ".nan",
    "<<: *a",
    "&a",
    "*a",
    "!!int",
    "---",
    "...",
    "- ",
    "? ",
    "%TAG",
    "\\UFFFFFFFF",
]


def outcome(content: bytes) -> Spec | SpecError:
    try:
        return read(read_bytes(content, FILE), FILE)
    except SpecError as error:
        found = error
    assert str(found).isprintable()
    assert found.line is None or found.line >= 1
    return found


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_spec_or_a_refusal(content: bytes) -> None:
    outcome(content)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_spec_or_a_refusal(content: str) -> None:
    outcome(content.encode(errors="surrogatepass"))


@settings(deadline=None)
@given(st.lists(st.sampled_from([*PIECES, *ODD, " ", "\n  "]), max_size=60))
def test_any_words_of_yaml_are_a_spec_or_a_refusal(words: list[str]) -> None:
    outcome(" ".join(words).encode())


@settings(deadline=None)
@given(st.data())
def test_a_good_file_with_a_piece_replaced_is_a_spec_that_can_be_planned_or_a_refusal(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(WHOLE)))
    end = data.draw(st.integers(start, min(len(WHOLE), start + 30)))
    piece = data.draw(st.one_of(st.text(max_size=10), st.sampled_from(ODD), st.sampled_from(PIECES)))
    found = outcome((WHOLE[:start] + piece + WHOLE[end:]).encode(errors="surrogatepass"))
    if isinstance(found, Spec):
        for profile in found.profiles:
            with suppress(PlanError):  # too many trials, or too long an id
                assert resolve(found, profile.name).trials


@pytest.mark.parametrize(
    "piece", ["a", "[", "{", "- ", "? ", "a: ", "'", '"', "#", "\n", "a\n", "&a ", "!a ", "|\n", ",", "{a: ", "[a, "]
)
def test_a_file_of_the_largest_size_is_read_or_refused_in_bounded_time(piece: str) -> None:
    """The bound is the test's own timeout."""
    assert isinstance(outcome((piece * FILE_BYTES_MAX)[:FILE_BYTES_MAX].encode()), SpecError)


def test_reading_does_not_change_the_file(tmp_path: Path) -> None:
    from workloads.spec.spec import load

    path = tmp_path / FILE
    path.write_text(WHOLE)
    load(path)
    assert path.read_text() == WHOLE
    assert list(tmp_path.iterdir()) == [path]
