"""How well a run with a budget knows its ratios, so that the next rounds go where they are needed.

The statistic is the report's plain one: rates of windows, architectures paired by block and round, the 95 % interval of
the mean of the blocks' log-ratios by Student's t. The analysis computes it from Spark's rates, and starting Spark would
take as long as a block, so it is computed here again, in a few lines (docs/decisions/0009).
"""

from __future__ import annotations

import math
from functools import cache
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workloads.results import REQUESTS, TRIALS, file_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from workloads.results import ResultsFolder
    from workloads.spec.plan import Plan, Trial

CONFIDENCE: Final = 0.95
DEGREES_MAX: Final = 120  # beyond this the report's quantile stays
ROLES: Final = ("producer", "consumer")
NOTHING_KNOWN: Final = 100.0  # by how much a ratio of one block misses any precision
_PANELS: Final = 2_000  # of Simpson's rule; the error is far below the last digit that matters
_BISECTIONS: Final = 60

# role, round -> messages/s of one trial
Rates = dict[tuple[str, int], float]


class Precision:
    """How well a run knows its ratios. Each finished trial is read once."""

    def __init__(self, plan: Plan, results: ResultsFolder) -> None:
        self._plan = plan
        self._results = results
        self._rates: dict[str, Rates] = {}

    def need(self, blocks: int) -> Mapping[str, float]:
        """Cell -> by how much its least known ratio misses the plan's precision: 1 and less is enough."""
        target = math.log1p(self._plan.effort.precision)
        valid = {trial for trial, (verdict, _) in self._results.finished_trials().items() if verdict == "valid"}
        trials = {
            (trial.cell.id, trial.architecture.name, trial.block): self._rates_of(trial)
            for trial in self._plan.trials
            if trial.block <= blocks and trial.id in valid
        }
        return {cell.id: self._widest(cell.id, trials, blocks) / target for cell in self._plan.cells}

    def _widest(self, cell: str, trials: Mapping[tuple[str, str, int], Rates], blocks: int) -> float:
        """The half width of the least known of the questions' ratios, as a logarithm."""
        widths = [0.0]
        for one, other in self._pairs():
            found = [
                block_means(trials.get((cell, one, block), {}), trials.get((cell, other, block), {}))
                for block in range(1, blocks + 1)
            ]
            for role in ROLES:
                means = [means[role] for means in found if role in means]
                if means or blocks < 2:  # a pair that has no rates in several blocks will not get any
                    widths.append(half_width(means))
        return max(widths)

    def _pairs(self) -> list[tuple[str, str]]:
        names = [architecture.name for architecture in self._plan.architectures]
        return list(self._plan.primary) or [(one, other) for at, one in enumerate(names) for other in names[:at]]

    def _rates_of(self, trial: Trial) -> Rates:
        import pyarrow.parquet as pq

        if trial.id not in self._rates:
            name = file_name(trial.id)
            (row,) = pq.read_table(self._results.path / TRIALS / name, columns=["windows"]).to_pylist()
            requests = pq.read_table(self._results.path / REQUESTS / name)
            self._rates[trial.id] = rates_of(row["windows"] or [], requests)
        return self._rates[trial.id]


def block_means(one: Rates, other: Rates) -> dict[str, float]:
    """Role -> the mean log-ratio of the rounds that both have."""
    logs: dict[str, list[float]] = {}
    for role, turn in one.keys() & other.keys():
        logs.setdefault(role, []).append(math.log(one[role, turn]) - math.log(other[role, turn]))
    return {role: fmean(sorted(own)) for role, own in logs.items()}


def half_width(means: Sequence[float]) -> float:
    if len(means) < 2:  # one block has no spread
        return NOTHING_KNOWN
    return quantile(min(len(means) - 1, DEGREES_MAX)) * stdev(means) / math.sqrt(len(means))


def rates_of(windows: Sequence[Mapping[str, Any]], requests: pa.Table) -> Rates:
    """Messages/s of each role and round; of several attempts, those of the least disturbed."""
    columns = {name: requests[name].to_numpy() for name in ("window_number", "messages", "sent_ns", "done_ns")}
    role, ok = requests["role"].to_numpy(zero_copy_only=False), requests["status"].to_numpy(zero_copy_only=False)
    found: Rates = {}
    for window in _used(windows):
        for each in ROLES:
            own = (role == each) & (ok == "ok") & (columns["window_number"] == window["number"])
            if own.any() and (rate := _rate(window, {name: column[own] for name, column in columns.items()})):
                found[each, window["round"]] = rate
    return found


def _used(windows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    best: dict[tuple[str, int], Mapping[str, Any]] = {}
    for window in windows:
        key = (window["window"], window["round"])
        if key not in best or window["foreign_cores"] < best[key]["foreign_cores"]:
            best[key] = window
    yield from best.values()


def _rate(window: Mapping[str, Any], rows: Mapping[str, Any]) -> float:
    """Messages/s in a window, which ends with rows; 0 where nothing was done in it."""
    done, messages = rows["done_ns"], rows["messages"]
    opened, closed = rows["sent_ns"].min() - 1, done.max()
    if window["opened_ns"] is not None:
        before, within = done[done <= window["opened_ns"]], done[done <= window["closed_ns"]]
        opened = before.max() if len(before) else window["opened_ns"]
        closed = within.max() if len(within) else opened
    inside = (done > opened) & (done <= closed)
    return float(messages[inside].sum()) / (closed - opened) * 1e9 if closed > opened else 0.0


@cache
def quantile(degrees: int) -> float:
    """The t between whose negative and itself Student's T lies with `CONFIDENCE`, by integration and bisection."""
    low, high = 0.0, 20.0  # with one degree of freedom, the widest, it is 12.7
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * _integral(middle, degrees) < CONFIDENCE else (low, middle)
    return (low + high) / 2


def _integral(end: float, degrees: int) -> float:
    """Integral of Student's density from 0 to `end`."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    weights = np.full(_PANELS + 1, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    density = (1 + np.linspace(0, end, _PANELS + 1) ** 2 / degrees) ** (-(degrees + 1) / 2)
    return float(scale * (weights * density).sum() * end / _PANELS / 3)
