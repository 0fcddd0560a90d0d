"""What becomes of a benchmark in which trials fail."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.bench.cells import Cell
from tests.bench.run import FAILURES_MAX, Bench, TooManyFailures
from tests.bench.trial import Unbalanced, Window

CELLS = (Cell(32, 1), Cell(32, 20))


@dataclass(frozen=True)
class Named:
    name: str


@dataclass
class Restarted:
    starts: int = 0

    async def start(self) -> None:
        self.starts += 1


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bench:
    """Of one target, each of whose trials of the cells in `request.param` fails."""

    class Trial:
        def __init__(self, target: Named, who: Restarted, cell: Cell, *_: object) -> None:
            self.cell = cell

        async def both(self) -> list[Window]:
            if self.cell in request.param:
                raise Unbalanced("one message too few")
            return [Window("both", 1000, 2.0, 1.0, 1.0, None, None)]

        split = both

    monkeypatch.setattr("tests.bench.run.Trial", Trial)
    target: Any = Named("brokerlab")
    who: Any = Restarted()
    return Bench([target], who, seconds=1.0)


@pytest.mark.parametrize("bench", [CELLS[:1]], indirect=True)
def test_a_failed_trial_is_noted_and_the_others_go_on_with_fresh_clients(bench: Bench) -> None:
    asyncio.run(bench.run(CELLS, repetitions=2))
    assert {record.cell for record in bench.records} == {CELLS[1]}
    assert [failure.split("  ")[1] for failure in bench.failed] == [
        f"brokerlab 32Bx1 {kind}: one message too few" for _ in range(2) for kind in ("split", "both")
    ]
    assert bench._who.starts == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("bench", [CELLS], indirect=True)
def test_too_many_failures_end_it(bench: Bench) -> None:
    with pytest.raises(TooManyFailures, match=f"{FAILURES_MAX} trials failed"):
        asyncio.run(bench.run(CELLS, repetitions=10))
    assert len(bench.failed) == FAILURES_MAX
