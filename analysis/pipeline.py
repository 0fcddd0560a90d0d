"""From a session and a folder to findings: every DataFrame of the analysis, collected once and put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from analysis import load
from analysis.errors import EngineError, cause
from analysis.findings import Findings, Found, cell_of, in_order, middle_cell
from analysis.measures import costs, latency, paper, rates, statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Say = Callable[[str], None]
T = TypeVar("T")
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


def findings(spark: SparkSession, place: load.Place, say: Say) -> Findings:
    """Compute everything. Raises EngineError when Spark fails."""
    with spark_errors():
        return _findings(spark, place, say)


def every_rate(spark: SparkSession, place: load.Place) -> DataFrame:
    """Every valid rate of a run, in messages/s."""
    records = load.load(spark, place)
    return rates.measured(rates.rates(records.trials, records.requests), "rps")


def _findings(spark: SparkSession, place: load.Place, say: Say) -> Findings:
    """Spark plans and compiles a query on one core, most of the time of an ordinary run: so several run at once."""
    with _side_by_side() as asked:
        say("reading the records")
        records = load.load(spark, place)
        say("rates from requests")
        rated = rates.rates(records.trials, records.requests).cache()
        values = rates.measured(rated, "rps", "kbps").cache()
        numbers = paper.published(spark).cache()
        by_trial = asked(lambda: rows_of(rated))
        histograms = latency.histograms(records.requests, records.latency)
        quantiles = asked(lambda: rows_of(latency.quantiles(histograms, rated)))
        cells = asked(lambda: rows_of(statistics.cells(values)))
        ratios = asked(lambda: rows_of(statistics.ratios(values.where("metric = 'rps'"))))
        coordination = asked(lambda: rows_of(costs.coordination(records.trials, rated)))
        resources = asked(lambda: rows_of(costs.resources(records.trials, rated)))
        batches = asked(lambda: rows_of(costs.batches(records.trials, rated)))
        equality = asked(lambda: rows_of(costs.equality(records.trials)))
        published = asked(lambda: rows_of(numbers))
        compared = asked(lambda: rows_of(paper.compared(numbers, values)))
        audit = asked(lambda: paper.audit(numbers))
        looked_at = _looked_at(by_trial.result())
        over_time = asked(lambda: rows_of(latency.over_time(records.requests, rated, looked_at)))
        _awaited(say, "statistics", cells, ratios)
        _awaited(say, "latency", quantiles, over_time)
        _awaited(say, "costs", coordination, resources, batches, equality)
        _awaited(say, "the published numbers", published, compared, audit)
    return Findings(
        trials=in_order(by_trial.result(), "try", "trial_id"),
        cells=in_order(cells.result()),
        ratios=in_order(ratios.result(), "against_rank", "against"),
        latency=in_order(quantiles.result(), "kind"),
        over_time=in_order(over_time.result(), "try", "slice"),
        coordination=in_order(coordination.result(), "operation"),
        resources=in_order(resources.result(), "process"),
        batches=in_order(batches.result()),
        equality=tuple(sorted(equality.result(), key=lambda row: costs.HELD_EQUAL.index(row["setting"]))),
        published=tuple(published.result()),
        paper_comparison=in_order(compared.result(), "table"),
        paper_audit=audit.result(),
        scale=tuple(load.scale(spark, place)),
    )


@contextmanager
def _side_by_side() -> Iterator[Callable[[Callable[[], T]], Future[T]]]:
    """Lend a function that runs work beside the caller. When the block fails, work that has not begun is cancelled."""
    pool = ThreadPoolExecutor(QUERIES_AT_ONCE)
    try:
        yield pool.submit
    finally:
        pool.shutdown(cancel_futures=True)


def _awaited(say: Say, step: str, *asked: Future[Any]) -> None:
    """Say the step and wait for its work; an error of one is raised here."""
    say(step)
    for one in asked:
        one.result()


def _looked_at(by_trial: Iterable[Found]) -> str:
    """The one cell whose rate over time is shown: the slices of all trials would have no bound."""
    valid = {cell_of(row): str(row["cell"]) for row in by_trial if row["kind"] == "measured" and row["rps"] is not None}
    return valid.get(middle_cell(valid, "streaming") or (), "")


def rows_of(frame: DataFrame) -> list[Found]:
    return [row.asDict(recursive=True) for row in frame.collect()]
