"""How a time budget is spent: which cells get more rounds, and whether there is another block. Pure.

The choice sees how well a ratio is known, and never which side is ahead: else a run would stop where chance favours
one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.spec.plan import Plan

# A cell gets so many rounds in one block at most: a cluster's start has an effect of its own, which more rounds of the
# same start do not average out.
ROUNDS_MAX: Final = 8
# Of a block's time with one round of each cell, what the windows of that round take; the rest is starting, joining and
# auditing. As measured; a wrong share makes a block longer or shorter, and the next one puts it right.
ROUND_SHARE: Final = 0.5


# A run that could stop because all is known goes on to so many blocks, and until that was so in two of them running:
# stopping at the first narrow interval would make intervals too narrow (simulated: 92 to 95 % are right this way).
BLOCKS_MIN: Final = 5


class Known(Protocol):
    """What a run knows of its ratios (`workloads.run.precision`)."""

    def need(self, blocks: int) -> Mapping[str, float]:
        """Cell -> by how much its least known ratio misses the precision that is asked for: 1 and less is enough."""


def rounds_for(
    plan: Plan, block: int, spent: Mapping[str, float], block_s: Mapping[str, float], known: Known
) -> Mapping[str, int] | None:
    """Cell -> rounds in this block; None where the block is not to be run."""
    effort = plan.effort
    least = {cell.id: effort.rounds for cell in plan.cells}
    if effort.budget_s is None or not block_s:
        return least if block <= effort.tries else None
    base_s = min(block_s.values())
    left_s = effort.budget_s - sum(spent.values())
    undecided = _undecided(known, block - 1)
    if block > effort.tries:
        decided = block > BLOCKS_MIN and not undecided and not _undecided(known, block - 2)
        if left_s < base_s or decided:
            return None
        share_s = left_s
    else:
        share_s = left_s / (effort.tries - block + 1)
    round_s = base_s * ROUND_SHARE / (effort.rounds * len(least))
    return _shared_out(least, undecided, int((share_s - base_s) / round_s))


def _undecided(known: Known, blocks: int) -> Mapping[str, float]:
    """Cell -> by how much it misses its precision after so many blocks, where it does."""
    return {cell: miss for cell, miss in known.need(blocks).items() if miss > 1}


def _shared_out(least: Mapping[str, int], undecided: Mapping[str, float], more: int) -> Mapping[str, int]:
    """Further rounds, one by one, to the cell that stands furthest from its precision. The width of an interval falls
    with the root of the rounds."""
    rounds = dict(least)
    for _ in range(max(0, more)):
        open_ = {
            cell: miss**2 * least[cell] / rounds[cell] for cell, miss in undecided.items() if rounds[cell] < ROUNDS_MAX
        }
        if not open_:
            break
        rounds[max(open_, key=lambda cell: (open_[cell], cell))] += 1
    return rounds
