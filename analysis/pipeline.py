"""From a session and a folder to findings: every DataFrame of the analysis, collected once and put in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import costs, latency, load, paper, statistics, trials
from analysis.errors import EngineError
from analysis.findings import Findings, Found, in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Say = Callable[[str], None]


def findings(spark: SparkSession, folder: Path, say: Say) -> Findings:
    """Compute everything. Raises InputError for records that cannot be one run's, EngineError when Spark fails."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return _findings(spark, folder, say)
    except (PySparkException, Py4JError) as error:
        raise EngineError(f"Spark failed: {str(error).strip().splitlines()[0]}") from error


def _findings(spark: SparkSession, folder: Path, say: Say) -> Findings:
    say("reading the records")
    records = load.load(spark, folder)
    say("rates from requests")
    rated = trials.rates(records.trials, records.requests).cache()
    by_trial = _rows(rated)
    values = trials.measured(rated, "rps", "kbps").cache()
    say("statistics")
    cells = _rows(statistics.cells(values))
    ratios = _rows(statistics.ratios(values.where("metric = 'rps'")))
    say("latency")
    quantiles = _rows(latency.quantiles(latency.histograms(records.requests, records.latency), rated))
    over_time = _rows(latency.over_time(records.requests, rated))
    say("costs")
    coordination = _rows(costs.coordination(records.trials, rated))
    resources = _rows(costs.resources(records.trials, rated))
    batches = _rows(costs.batches(records.trials, rated))
    equality = _rows(costs.equality(records.trials))
    say("the published numbers")
    numbers = paper.published(spark).cache()
    compared = _rows(paper.compared(numbers, values))
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
    )


def _rows(frame: DataFrame) -> list[Found]:
    return [row.asDict(recursive=True) for row in frame.collect()]
