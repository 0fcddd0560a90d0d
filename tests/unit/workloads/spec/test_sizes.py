from __future__ import annotations

import pytest

from workloads.spec.sizes import format_size, parse_size, parse_sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8B", 8),
        ("32 B", 32),
        ("1KB", 1024),
        ("1KiB", 1024),
        ("128KB", 131_072),
        ("1MB", 2**20),
        ("16MiB", 2**24),
        ("0B", 0),
    ],
)
def test_a_size_is_a_number_and_a_unit_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("32", "it has no unit; write 32B"),
        ("32b", "unknown unit 'b'"),
        ("32kb", "unknown unit 'kb'"),
        ("32GB", "unknown unit 'GB'"),
        ("32bytes", "unknown unit 'bytes'"),
        ("B", "must be a whole number and B, KB or MB"),
        ("", "must be"),
        ("-8B", "must be"),
        ("+8B", "must be"),
        ("08B", "must be"),
        ("1.5KB", "must be"),
        ("1e3B", "must be"),
        ("1_000B", "must be"),
        ("8  B", "must be"),
        (" 8B", "must be"),
        ("8B ", "must be"),
        ("8\nB", "must be"),
        ("٣B", "must be"),
        ("9" * 5_000 + "B", "must be"),
    ],
)
def test_what_is_no_size_is_refused_with_what_is_allowed(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_size(text)


def test_a_range_doubles_from_the_first_size_to_the_last() -> None:
    found = parse_sizes("8B..128KB")
    assert len(found) == 15
    assert found == [8 * 2**power for power in range(15)]
    assert parse_sizes("24 B .. 48 B") == [24, 48]


def test_one_size_is_a_range_of_itself() -> None:
    assert parse_sizes("32B") == parse_sizes("32B..32B") == [32]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("8B..100B", "does not double from 8B to 100B; end it at 64B or 128B"),
        ("64B..8B", "not above the last"),
        ("0B..8B", "above 0"),
        ("8..128KB", "has no unit; write 8B"),
        ("8B..", "must be"),
        ("..8B", "must be"),
        ("8B...16B", "must be"),
        ("8B..16B..32B", "must be"),
    ],
)
def test_what_is_no_range_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_sizes(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0B"), (8, "8B"), (1000, "1000B"), (1024, "1KB"), (1536, "1536B"), (2**20, "1MB")]
)
def test_a_size_is_written_in_the_largest_unit_that_is_exact(size: int, text: str) -> None:
    assert format_size(size) == text
