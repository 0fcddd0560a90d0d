"""Means, intervals and paired ratios, by Spark, from long rows: cell, architecture, role, metric, try, value.

Sums run over arrays sorted by try, never in the order in which partitions happen to arrive, so that the same records
give the same digits on any number of cores or machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from analysis.findings import CONTROL
from analysis.measures.rates import ARCHITECTURE, AXES, CELL
from analysis.measures.student_t import DEGREES_MAX, quantile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FASTER, SLOWER, UNDECIDED, ONE_TRY = "faster", "slower", "not distinguishable", "one try"
_BY = (*CELL, "role", "metric")
# A cell's name may differ between two runs, as it names the swept axes of its own run; these columns may not.
_ACROSS = ("others", *AXES, "role", "metric")


def cells(values: DataFrame) -> DataFrame:
    """Per cell, architecture, role and metric: n, mean, sd, cv and the 95 % interval of the mean (Student's t).

    One value alone has neither spread nor interval: those columns are empty.
    """
    gathered = values.groupBy(*_BY, *ARCHITECTURE).agg(_in_order("value"))
    return (
        _moments(gathered)
        .withColumn("geometric", fn.exp(_sum(fn.transform("values", fn.ln)) / fn.col("n")))
        .withColumn("cv", fn.when(fn.col("mean") != 0, fn.col("sd") / fn.col("mean")))
        .withColumn("low", fn.col("mean") - fn.col("half"))
        .withColumn("high", fn.col("mean") + fn.col("half"))
        .drop("values", "half")
    )


def ratios(values: DataFrame, control: str = CONTROL) -> DataFrame:
    """Every two architectures, paired by try: ratio of geometric means, its 95 % interval, and a verdict.

    `architecture` is compared `against` the one that the experiments name before it; every other architecture is
    compared against `control`. A try that one of the two lacks is left out.
    """
    return _verdicts(
        _moments(_pairs(values, control))
        .withColumn("ratio", fn.exp("mean"))
        .withColumn("low", fn.exp(fn.col("mean") - fn.col("half")))
        .withColumn("high", fn.exp(fn.col("mean") + fn.col("half")))
        .drop("values", "half", "mean", "sd")
    )


def _pairs(values: DataFrame, control: str) -> DataFrame:
    """Every two architectures of a cell: `values` are the logarithms of their ratios, try by try."""
    place = fn.when(fn.col("architecture") == control, -1).otherwise(fn.col("architecture_rank"))
    one = values.where("value > 0").withColumn("place", place)
    base = one.select(
        *_BY,
        "try",
        fn.col("architecture").alias("against"),
        fn.col("architecture_rank").alias("against_rank"),
        fn.col("place").alias("base_place"),
        fn.col("value").alias("base"),
    )
    pairs = one.join(base, [*_BY, "try"]).where(fn.col("place") > fn.col("base_place"))
    logs = pairs.withColumn("log", fn.log(fn.col("value") / fn.col("base")))
    return logs.groupBy(*_BY, *ARCHITECTURE, "against", "against_rank").agg(_in_order("log"))


def ranked_as(first: DataFrame, second: DataFrame) -> DataFrame:
    """A run's values with the architectures in the order of another, without those that the other lacks."""
    ranks = second.select(*ARCHITECTURE).distinct()
    return first.drop("architecture_rank").join(fn.broadcast(ranks), "architecture")


def rates_between(first: DataFrame, second: DataFrame) -> DataFrame:
    """Two runs' rates of every cell and architecture that both have: the second's over the first's."""
    logs = [
        run.where("value > 0").withColumn("log", fn.log("value")).groupBy(*_BY, *ARCHITECTURE).agg(_in_order("log"))
        for run in (first, second)
    ]
    return _between(logs[0], logs[1], (*_ACROSS, *ARCHITECTURE))


def ratios_between(first: DataFrame, second: DataFrame, control: str = CONTROL) -> DataFrame:
    """Two runs' ratios of every two architectures: the second's ratio over the first's."""
    pairs = [_pairs(run, control) for run in (first, second)]
    return _between(pairs[0], pairs[1], (*_ACROSS, *ARCHITECTURE, "against", "against_rank"))


def _between(first: DataFrame, second: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Compare two runs' logarithms (`values`) by Welch's t: nothing pairs a block of one run with one of another.

    The degrees of freedom are rounded down, so an interval is never too narrow.
    """
    one, other = (_side(logs, run).select(*keys, *_of(run)) for logs, run in ((first, "first"), (second, "second")))
    mine, yours = (fn.col(f"sd_{run}") * fn.col(f"sd_{run}") / fn.col(f"n_{run}") for run in ("first", "second"))
    joined = one.join(other, list(keys)).withColumn("variance", mine + yours)
    share = fn.when(fn.col("variance") > 0, mine / fn.col("variance")).otherwise(0.5)
    free = [fn.greatest(fn.lit(1), fn.col(f"n_{run}") - 1) for run in ("first", "second")]
    degrees = 1 / (share * share / free[0] + (1 - share) * (1 - share) / free[1])
    fewest = fn.least("n_first", "n_second")
    # A sum of rounded fractions may fall just short of the whole number that it is.
    t = _t_quantile(fn.greatest(fn.lit(1), fn.floor(degrees + 1e-9)).cast("int"))
    difference = fn.log(fn.col("second") / fn.col("first"))
    return _verdicts(
        joined.withColumn("n", fewest)
        .withColumn("half", fn.when(fewest > 1, t * fn.sqrt("variance")))
        .withColumn("ratio", fn.col("second") / fn.col("first"))
        .withColumn("low", fn.exp(difference - fn.col("half")))
        .withColumn("high", fn.exp(difference + fn.col("half")))
        .drop("variance", "half")
    )


def _side(logs: DataFrame, run: str) -> DataFrame:
    """One run's geometric mean, its own verdict against 1, and what Welch needs, with the run in the columns' names."""
    found = _verdicts(
        _moments(logs)
        .withColumn("low", fn.exp(fn.col("mean") - fn.col("half")))
        .withColumn("high", fn.exp(fn.col("mean") + fn.col("half")))
    )
    names = {"n": f"n_{run}", "sd": f"sd_{run}", "verdict": f"verdict_{run}"}
    return found.withColumn(run, fn.exp("mean")).withColumnsRenamed(names)


def _of(run: str) -> tuple[str, ...]:
    return (f"n_{run}", f"sd_{run}", f"verdict_{run}", run)


def _in_order(value: str) -> Column:
    tries = fn.sort_array(fn.collect_list(fn.struct("try", value)))
    return fn.transform(tries, lambda one: one[value]).alias("values")


def _moments(gathered: DataFrame) -> DataFrame:
    """Add n, mean, sd and `half`, the half width of the interval, to rows that carry `values`."""
    mean = _sum(fn.col("values")) / fn.col("n")
    squares = _sum(fn.transform("values", lambda x: (x - fn.col("mean")) * (x - fn.col("mean"))))
    several = fn.col("n") > 1
    return (
        gathered.withColumn("n", fn.size("values"))
        .withColumn("mean", mean)
        .withColumn("sd", fn.when(several, fn.sqrt(squares / (fn.col("n") - 1))))
        .withColumn("half", fn.when(several, _t_quantile(fn.col("n") - 1) * fn.col("sd") / fn.sqrt("n")))
    )


def _sum(values: Column) -> Column:
    return fn.aggregate(values, fn.lit(0.0), lambda total, x: total + x)


def _t_quantile(degrees: Column) -> Column:
    literals = ", ".join(f"{quantile(d)!r}D" for d in range(1, DEGREES_MAX + 1))
    table = fn.expr(f"array({literals})")
    return fn.element_at(table, fn.least(degrees, fn.lit(DEGREES_MAX)))


def _verdicts(compared: DataFrame) -> DataFrame:
    verdict = (
        fn.when(fn.col("n") == 1, ONE_TRY)
        .when(fn.col("low") > 1, FASTER)
        .when(fn.col("high") < 1, SLOWER)
        .otherwise(UNDECIDED)
    )
    return compared.withColumn("verdict", verdict)
