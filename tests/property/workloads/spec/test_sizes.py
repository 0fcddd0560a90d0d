from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.spec.sizes import format_size, parse_size, parse_sizes


@settings(deadline=None)
@given(st.integers(0, 10**11))
def test_a_size_that_is_written_is_read_back_as_itself(size: int) -> None:
    assert parse_size(format_size(size)) == size


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(0, 20))
def test_a_range_holds_each_doubling_and_ends_where_it_says(first: int, doublings: int) -> None:
    last = first * 2**doublings
    found = parse_sizes(f"{format_size(first)}..{format_size(last)}")
    assert found == [first * 2**power for power in range(doublings + 1)]
    assert all(parse_sizes(format_size(size)) == [size] for size in found)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_rising_sizes_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        found = parse_sizes(text)
        assert found == sorted(found)
