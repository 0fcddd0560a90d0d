"""The comparison of paths has a row for each request, number and architecture."""

from __future__ import annotations

from tests.benchmarks.paths import compared
from tests.benchmarks.profiles import LOOP, part_of


def test_a_comparison_has_a_row_for_each_request_number_and_architecture() -> None:
    jobs = ["produce 32 B x 1", "fetch 32 B x 20", "commit"]
    said = compared(["static", "lookup-memory", "static-journal"], [1, 3], jobs, requests=6, rounds=1)
    assert len(said) == 2 + 3 * 2 * 3


def test_a_function_belongs_to_the_part_where_it_stands() -> None:
    assert part_of(("/x/coordinators/dsbs/shell.py", 1, "do")) == "coordinators/dsbs"
    assert part_of(("/x/coordinators/api.py", 1, "leader")) == "coordinators, the rest"
    assert part_of(("/lib/asyncio/runners.py", 1, "run")) == LOOP
