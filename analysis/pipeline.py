"""From a session and a folder to findings: every DataFrame of the analysis, collected once and put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from analysis import costs, latency, load, paper, statistics, trials
from analysis.errors import EngineError
from analysis.findings import Findings, Found, cell_of, in_order, middle_cell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Say = Callable[[str], None]


@contextmanager
def spark_errors() -> Iterator[None]:
    """What Spark raises becomes an EngineError of one line."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise EngineError(f"Spark failed: {str(error).strip().splitlines()[0]}") from error


def findings(spark: SparkSession, place: load.Place, say: Say) -> Findings:
    """Compute everything. Raises EngineError when Spark fails."""
    with spark_errors():
        return _findings(spark, place, say)


def rates(spark: SparkSession, place: load.Place) -> DataFrame:
    """Every rate of a run that counts, in messages/s."""
    records = load.load(spark, place)
    return trials.measured(trials.rates(records.trials, records.requests), "rps")


def _findings(spark: SparkSession, place: load.Place, say: Say) -> Findings:
    say("reading the records")
    records = load.load(spark, place)
    say("rates from requests")
    rated = trials.rates(records.trials, records.requests).cache()
    by_trial = rows_of(rated)
    values = trials.measured(rated, "rps", "kbps").cache()
    say("statistics")
    cells = rows_of(statistics.cells(values))
    ratios = rows_of(statistics.ratios(values.where("metric = 'rps'")))
    say("latency")
    quantiles = rows_of(latency.quantiles(latency.histograms(records.requests, records.latency), rated))
    over_time = rows_of(latency.over_time(records.requests, rated, _looked_at(by_trial)))
    say("costs")
    coordination = rows_of(costs.coordination(records.trials, rated))
    resources = rows_of(costs.resources(records.trials, rated))
    batches = rows_of(costs.batches(records.trials, rated))
    equality = rows_of(costs.equality(records.trials))
    say("the published numbers")
    numbers = paper.published(spark).cache()
    compared = rows_of(paper.compared(numbers, values))
    published = [row.asDict() for row in numbers.collect()]
    audit = paper.audit(numbers)
    return Findings(
        trials=in_order(by_trial, "try", "trial_id"),
        cells=in_order(cells),
        ratios=in_order(ratios, "against_rank", "against"),
        latency=in_order(quantiles, "kind"),
        over_time=in_order(over_time, "try", "slice"),
        coordination=in_order(coordination, "operation"),
        resources=in_order(resources, "process"),
        batches=in_order(batches),
        equality=tuple(sorted(equality, key=lambda row: costs.HELD_EQUAL.index(row["setting"]))),
        published=tuple(published),
        paper_comparison=in_order(compared, "table"),
        paper_audit=audit,
        scale=tuple(load.scale(spark, place)),
    )


def _looked_at(by_trial: Iterable[Found]) -> str:
    """The cell whose rate over time is shown: every slice of every trial would be without bound."""
    valid = {cell_of(row): str(row["cell"]) for row in by_trial if row["kind"] == "measured" and row["rps"] is not None}
    return valid.get(middle_cell(valid, "streaming") or (), "")


def rows_of(frame: DataFrame) -> list[Found]:
    return [row.asDict(recursive=True) for row in frame.collect()]
