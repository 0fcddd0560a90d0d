"""When a run that goes on `until` its ratios are known has enough blocks.

The statistic is the report's own: rates from the request rows, architectures paired by try, the 95 % interval of the
mean of the log-ratios by Student's t. The analysis computes it in Spark, which would take longer to start than a block
takes to run, so it is computed here again, in a few lines, and a test holds the two together
(docs/decisions/0009-when-to-stop-is-computed-twice.md).
"""

from __future__ import annotations

import math
from functools import cache
from statistics import stdev
from typing import TYPE_CHECKING, Final

import numpy as np

from workloads.results import REQUESTS, file_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from workloads.results import ResultsFolder
    from workloads.spec.plan import Plan, Trial

CONFIDENCE: Final = 0.95
DEGREES_MAX: Final = 120  # beyond this the report's quantile stays
ROLES: Final = ("producer", "consumer")
_PANELS: Final = 2_000  # of Simpson's rule; the error is far below the last digit that matters
_BISECTIONS: Final = 60

# cell, role, architecture -> try -> messages/s
Rates = dict[tuple[str, str, str], dict[int, float]]


class Precision:
    """How well a run knows its ratios. Each finished trial is read once."""

    def __init__(self, plan: Plan, results: ResultsFolder) -> None:
        self._trials = [trial for trial in plan.trials if trial.kind == "measured"]
        self._architectures = [architecture.name for architecture in plan.architectures]
        self._results = results
        self._rates: dict[str, Mapping[str, float]] = {}

    def reached(self, ratio_interval: float, tries: int) -> bool:
        """Whether after so many tries every interval is at most that wide to either side."""
        valid = {trial for trial, (verdict, _) in self._results.finished_trials().items() if verdict == "valid"}
        rates: Rates = {(t.cell.id, role, t.architecture.name): {} for t in self._trials for role in ROLES}
        for trial in self._trials:
            if trial.block <= tries and trial.id in valid:
                for role, rps in self._rates_of(trial).items():
                    rates[trial.cell.id, role, trial.architecture.name][trial.block] = rps
        return widest(rates, self._architectures) <= ratio_interval

    def _rates_of(self, trial: Trial) -> Mapping[str, float]:
        import pyarrow.parquet as pq

        if trial.id not in self._rates:
            columns = ["role", "messages", "status", "sent_ns", "done_ns"]
            path = self._results.path / REQUESTS / file_name(trial.id)
            self._rates[trial.id] = rates_of(pq.read_table(path, columns=columns))
        return self._rates[trial.id]


def rates_of(requests: pa.Table) -> dict[str, float]:
    """Role -> messages/s of one trial: from the first send to the last completion that carried a message."""
    columns = {name: requests.column(name).to_numpy() for name in ("messages", "sent_ns", "done_ns")}
    roles, ok = requests.column("role").to_numpy(), requests.column("status").to_numpy() == "ok"
    found = {}
    for role in ROLES:
        own = roles == role
        done = own & ok & (columns["messages"] > 0)
        if done.any():
            window_ns = int(columns["done_ns"][done].max() - columns["sent_ns"][own].min())
            found[role] = int(columns["messages"][done].sum()) / max(1, window_ns) * 1e9
    return found


def widest(rates: Rates, architectures: Sequence[str]) -> float:
    """The interval of the least known ratio: 0.1 where it reaches up to 1.1 times the ratio, and as far down."""
    intervals = [0.0]
    for (cell, role, one), by_try in rates.items():
        for other in architectures[: architectures.index(one)]:
            against = rates[cell, role, other]
            intervals.append(ratio_interval([math.log(by_try[n] / against[n]) for n in by_try.keys() & against]))
    return max(intervals)


def ratio_interval(logs: Sequence[float]) -> float:
    """How far the interval of the ratio reaches beyond it, from the logarithms of the tries' own ratios."""
    if len(logs) < 2:  # one try has no spread
        return math.inf
    return math.expm1(quantile(min(len(logs) - 1, DEGREES_MAX)) * stdev(logs) / math.sqrt(len(logs)))


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
