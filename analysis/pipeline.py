"""From a session and a folder to findings: a few queries of Spark's, and all that follows from their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from analysis import load
from analysis.engine import Engine, Rows, SparkEngine
from analysis.errors import EngineError, cause
from analysis.findings import Findings, Found, cell_of, in_order, middle_cell
from analysis.measures import costs, latency, paper, protocol, rates
from analysis.measures.costs import Worked
from analysis.statistics import cells, pooled, ratios, zero
from analysis.statistics.pairs import logs, pairs, primary_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]
T = TypeVar("T")
Asked = Callable[[Callable[[], T]], Future[T]]
# Spark plans and compiles a query on one core, most of the time of an ordinary run: so several run at once.
QUERIES_AT_ONCE: Final = 3


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn an error of Spark's into an EngineError of one line."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise EngineError(f"Spark failed: {cause(str(error))}") from error


def findings(spark: SparkSession, place: load.Place, say: Say, manifest: Mapping[str, Any] | None = None) -> Findings:
    """Compute everything. Raises EngineError when Spark fails."""
    with spark_errors():
        say("reading the records")
        engine = SparkEngine(spark, load.load(spark, place))
        return computed(engine, say, manifest or {}, load.scale(spark, place))


def every_window(spark: SparkSession, place: load.Place) -> list[Found]:
    """The used windows of a run's valid trials."""
    engine = SparkEngine(spark, load.load(spark, place))
    return rates.of_valid(rates.windows(engine.trials(), rates.gathered(engine.window_sums())))


@dataclass(frozen=True, slots=True)
class _Rated:
    """What the first queries gave: every trial, its windows, and those that count."""

    trials: Rows
    sums: Mapping[rates.Key, rates.Sums]
    windows: Rows
    valid: list[Found]

    @property
    def worked(self) -> Worked:
        return Worked(self.valid, self.sums)


def computed(engine: Engine, say: Say, manifest: Mapping[str, Any], scale: Iterable[Found] = ()) -> Findings:
    """Findings of an engine's sums; `manifest` names the primary questions, where it does."""
    with _side_by_side() as asked:
        say("rates from requests")
        trials, sums = asked(engine.trials), asked(engine.window_sums)
        summed = [asked(query) for query in (engine.resource_sums, engine.coordination_sums, engine.request_sums)]
        rated = _rated(trials.result(), sums.result())
        names, named = latency.groups(rated.trials, rated.valid)
        quantiles = asked(lambda: engine.quantiles(named) if names else [])
        looked, at = latency.looked_at(rated.valid, rated.sums, _looked_at(rated.valid))
        slices = asked(lambda: engine.slices(at) if looked else [])
        say("costs")
        resources, coordination, requests = (one.result() for one in summed)
        say("statistics")
        compared = _compared(rated, costs.processor_time(resources, rated.worked), manifest)
        say("latency")
        reached, over_time = quantiles.result(), latency.over_time(slices.result(), looked)
    say("the published numbers")
    numbers = paper.published()
    return Findings(
        **compared,
        windows=in_order(rated.windows, "try", "trial_id", "number"),
        trials=in_order(rates.by_trial(rated.trials, rated.sums, rated.windows), "try", "trial_id"),
        cells=in_order(cells.cells(rated.valid)),
        load=in_order(latency.load(reached, names, rated.trials, rated.valid)),
        latency=in_order(latency.latency(reached, names, rated.trials), "kind"),
        over_time=in_order(over_time, "try", "slice"),
        coordination=in_order(costs.coordination(coordination, rated.worked), "operation"),
        resources=in_order(costs.resources(resources, rated.worked), "process"),
        batches=in_order(costs.batches(requests, rated.worked)),
        equality=tuple(costs.equality(rated.trials)),
        published=numbers,
        paper_comparison=in_order(paper.compared(numbers, compared["ratios"]), "table"),
        paper_audit=paper.audit(numbers),
        scale=tuple(scale),
    )


def _rated(trials: Rows, sums: Rows) -> _Rated:
    known = [trial for trial in trials if trial["kind"] in (rates.MEASURED, rates.CALIBRATION)]
    gathered = rates.gathered(sums)
    windows = rates.windows(known, gathered)
    return _Rated(known, gathered, windows, rates.of_valid(windows))


def _compared(rated: _Rated, cpu: Rows, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Every two architectures: by cell, by family, and the two names of one."""
    twins = zero.twins(rated.trials)
    measured = [trial for trial in rated.trials if trial["kind"] == rates.MEASURED]
    primary = primary_of(measured, manifest.get("primary") or (), twins)
    of = pairs(measured, primary)
    rate_logs, cost_logs = logs(rated.valid, "rps", of), logs(cpu, "cpu_us", of)
    by_cell = in_order(ratios.ratios(rate_logs, protocol.precision(manifest)), "against_rank", "against")
    return {
        "ratios": by_cell,
        "pooled": tuple(pooled.pooled(rate_logs, cost_logs, primary)),
        "zero": tuple(zero.zero(by_cell, rate_logs, twins)),
        "protocol": protocol.protocol(rated.trials, rated.windows, primary, manifest),
    }


@contextmanager
def _side_by_side() -> Iterator[Asked[Any]]:
    """Lend a function that runs work beside the caller. When the block fails, work that has not begun is cancelled."""
    pool = ThreadPoolExecutor(QUERIES_AT_ONCE)
    try:
        yield pool.submit
    finally:
        pool.shutdown(cancel_futures=True)


def _looked_at(valid: Iterable[Found]) -> str:
    """The one cell whose rate over time is shown: the slices of all trials would have no bound."""
    known = {cell_of(row): str(row["cell"]) for row in valid if row["rps"] is not None}
    return known.get(middle_cell(known, "streaming") or (), "")
