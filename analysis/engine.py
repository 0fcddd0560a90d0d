"""What is computed from raw records, each a query: small sums, from which all else follows without Spark.

Request rows may be many millions; their sums by window and slice, and the costs by window, are thousands at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from analysis.measures import costs, latency, windows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from analysis.load import Records

Rows = list[dict[str, Any]]
# What a trial holds besides its costs.
TRIAL = (
    *("schema_version", "trial_id", "kind", "cell", "architecture", "architecture_rank", "settings", "try", "position"),
    *("mode", "message_size", "batch_size", *costs.HELD_EQUAL, "load"),
    *("sent", "acknowledged", "stored", "consumed", "windows", "verdict", "reason"),
)


class Engine(Protocol):
    """The queries. Rows come in any order."""

    def trials(self) -> Rows:
        """The columns TRIAL of every trial."""

    def window_sums(self) -> Rows:
        """As `measures.windows.sums`."""

    def resource_sums(self) -> Rows:
        """As `measures.costs.resource_sums`."""

    def coordination_sums(self) -> Rows:
        """As `measures.costs.coordination_sums`."""

    def request_sums(self) -> Rows:
        """As `measures.costs.request_sums`."""

    def quantiles(self, named: pa.Table) -> Rows:
        """As `measures.latency.quantiles`, of the windows named."""

    def slices(self, looked_at: pa.Table) -> Rows:
        """As `measures.latency.slices`, of the windows looked at."""


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """The queries, by Spark."""

    spark: SparkSession
    records: Records

    def trials(self) -> Rows:
        return rows_of(self.records.trials.select(*TRIAL))

    def window_sums(self) -> Rows:
        return rows_of(windows.sums(self.records.trials, self.records.requests))

    def resource_sums(self) -> Rows:
        return rows_of(costs.resource_sums(self.records.trials))

    def coordination_sums(self) -> Rows:
        return rows_of(costs.coordination_sums(self.records.trials))

    def request_sums(self) -> Rows:
        return rows_of(costs.request_sums(self.records.trials))

    def quantiles(self, named: pa.Table) -> Rows:
        counted = latency.histograms(self.records.requests, self.records.latency)
        return rows_of(latency.quantiles(counted, self.spark.createDataFrame(named)))

    def slices(self, looked_at: pa.Table) -> Rows:
        return rows_of(latency.slices(self.records.requests, self.spark.createDataFrame(looked_at)))


def rows_of(frame: DataFrame) -> Rows:
    """A frame's rows, by Arrow: a row of Python's own for each of thousands of slices would take as long as Spark."""
    found: Rows = frame.toArrow().to_pylist()
    return found
