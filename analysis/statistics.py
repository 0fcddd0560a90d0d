"""Means, intervals and paired ratios, by Spark, from long rows: cell, architecture, role, metric, try, value.

Sums run over arrays sorted by try, never in the order in which partitions happen to arrive, so that the same records
give the same digits on any number of cores or machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from analysis.findings import CONTROL
from analysis.student import DEGREES_MAX, quantile
from analysis.trials import ARCHITECTURE, CELL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FASTER, SLOWER, UNDECIDED, ONE_TRY = "faster", "slower", "not distinguishable", "one try"
_BY = (*CELL, "role", "metric")


def cells(values: DataFrame) -> DataFrame:
    """Per cell, architecture, role and metric: n, mean, sd, cv and the 95 % interval of the mean (Student's t).

    One value alone has neither spread nor interval: those columns are empty.
    """
    gathered = values.groupBy(*_BY, *ARCHITECTURE).agg(_in_order("value"))
    return (
        _moments(gathered)
        .withColumn("cv", fn.when(fn.col("mean") != 0, fn.col("sd") / fn.col("mean")))
        .withColumn("low", fn.col("mean") - fn.col("half"))
        .withColumn("high", fn.col("mean") + fn.col("half"))
        .drop("values", "half")
    )


def ratios(values: DataFrame, control: str = CONTROL) -> DataFrame:
    """Every two architectures, paired by try: ratio of geometric means, its 95 % interval, and a verdict.

    `architecture` is compared `against` the one that the experiments name before it; `control`, where it takes part,
    is always what the other is compared against. Pairs of which one half is missing are left out.
    """
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
    gathered = logs.groupBy(*_BY, *ARCHITECTURE, "against", "against_rank").agg(_in_order("log"))
    return _verdicts(
        _moments(gathered)
        .withColumn("ratio", fn.exp("mean"))
        .withColumn("low", fn.exp(fn.col("mean") - fn.col("half")))
        .withColumn("high", fn.exp(fn.col("mean") + fn.col("half")))
        .drop("values", "half", "mean", "sd")
    )


def _in_order(value: str) -> Column:
    tries = fn.sort_array(fn.collect_list(fn.struct("try", value)))
    return fn.transform(tries, lambda one: one[value]).alias("values")


def _moments(gathered: DataFrame) -> DataFrame:
    """Add n, mean, sd and `half`, the half width of the interval, to rows that carry `values`."""
    mean = fn.aggregate("values", fn.lit(0.0), lambda total, x: total + x) / fn.col("n")
    squares = fn.aggregate("values", fn.lit(0.0), lambda total, x: total + (x - fn.col("mean")) * (x - fn.col("mean")))
    several = fn.col("n") > 1
    return (
        gathered.withColumn("n", fn.size("values"))
        .withColumn("mean", mean)
        .withColumn("sd", fn.when(several, fn.sqrt(squares / (fn.col("n") - 1))))
        .withColumn("half", fn.when(several, _t_quantile(fn.col("n") - 1) * fn.col("sd") / fn.sqrt("n")))
    )


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
