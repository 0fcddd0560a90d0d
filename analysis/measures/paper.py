"""The published numbers: their statistics, the comparison with a run, and an audit of the tables themselves.

Everything is computed from `data/paper_tables.csv` by the code that computes a run's own statistics; so are the
findings of the audit.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn

from analysis.findings import PAPER_PAIR, Found
from analysis.measures import statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROPOSAL, BASELINE = PAPER_PAIR
TABLES = Path(__file__).parents[1] / "data" / "paper_tables.csv"
_COLUMNS = {
    "table": "string",
    "architecture": "string",
    "message_size": "bigint",
    "batch_size": "int",
    "mode": "string",
    "role": "string",
    "metric": "string",
    "try": "string",
    "value": "double",
}
_AXES = ("message_size", "batch_size", "mode", "role")


def published(spark: SparkSession) -> DataFrame:
    """Every published number, as in the file."""
    import pyarrow as pa

    with TABLES.open(newline="") as file:
        rows = list(csv.DictReader(file))
    # By Arrow: rows of Python's own would start a Python process for each of Spark's tasks.
    texts = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    columns = [fn.col(f"`{name}`").cast(kind).alias(name) for name, kind in _COLUMNS.items()]
    return spark.createDataFrame(texts).select(*columns)


def tries(numbers: DataFrame) -> DataFrame:
    """The published tries in the shape of measured ones; the two tables are kept apart as an axis of their own."""
    cell = fn.concat_ws(
        "/", "table", fn.col("message_size").cast("string"), fn.col("batch_size").cast("string"), "mode"
    )
    return numbers.where("`try` != 'avg'").select(
        cell.alias("cell"),
        fn.col("table").alias("others"),
        *_AXES[:3],
        "role",
        "metric",
        "architecture",
        fn.when(fn.col("architecture") == BASELINE, 0).otherwise(1).alias("architecture_rank"),
        fn.col("try").cast("int").alias("try"),
        "value",
    )


def beside(values: DataFrame, published_tries: DataFrame) -> DataFrame:
    """A run's values in the published cells, once for each table that has the cell (in `others`)."""
    cells = published_tries.select("others", *_AXES).distinct()
    return values.where("others = ''").drop("others").join(fn.broadcast(cells), list(_AXES))


def averages(numbers: DataFrame) -> DataFrame:
    """Per cell and role published for both architectures, their averages in messages/s and the ratio."""
    average = numbers.where("`try` = 'avg' and metric = 'rps'")
    columns = [
        fn.max(fn.when(fn.col("architecture") == name, fn.col("value"))).alias(name) for name in (BASELINE, PROPOSAL)
    ]
    return (
        average.groupBy("table", *_AXES)
        .agg(*columns)
        .dropna()
        .withColumn("published", fn.col(PROPOSAL) / fn.col(BASELINE))
    )


def compared(numbers: DataFrame, values: DataFrame) -> DataFrame:
    """Published and measured ratio, cell by cell, where a run's `values` hold both architectures."""
    both = values.where((fn.col("metric") == "rps") & fn.col("architecture").isin(PROPOSAL, BASELINE))
    measured = statistics.ratios(both.where("others = ''"), control=BASELINE)
    same = (fn.col("published") > 1) == (fn.col("ratio") > 1)
    decided = fn.col("verdict").isin(statistics.FASTER, statistics.SLOWER)
    hypothesis = (
        fn.when(fn.col("verdict") == statistics.FASTER, "holds")
        .when(fn.col("verdict") == statistics.SLOWER, "the opposite holds")
        .otherwise(fn.concat(fn.lit("open: "), "verdict"))
    )
    return (
        averages(numbers)
        .join(measured.select(*_AXES, "n", "ratio", "low", "high", "verdict"), list(_AXES))
        .withColumn("direction", fn.when(decided, fn.when(same, "yes").otherwise("no")).otherwise(fn.col("verdict")))
        .withColumn("inside", (fn.col("published") >= fn.col("low")) & (fn.col("published") <= fn.col("high")))
        .withColumn("hypothesis", hypothesis)
        .drop(BASELINE, PROPOSAL)
    )


def repeated(numbers: DataFrame) -> DataFrame:
    """Cells that two tables publish: the tries' factor between the tables, where they are not the same."""
    keys = ("architecture", *_AXES)
    own = numbers.where("metric = 'rps' and `try` != 'avg'")
    other = own.select(*keys, "try", fn.col("table").alias("other_table"), fn.col("value").alias("other"))
    both = own.join(other, [*keys, "try"]).where(fn.col("table") > fn.col("other_table"))
    factor = fn.col("other") / fn.col("value")
    found = both.groupBy(*keys, "table", "other_table").agg(
        fn.min(factor).alias("least"),
        fn.max(factor).alias("most"),
        fn.count("*").alias("tries"),
        fn.sort_array(fn.collect_list(fn.struct("try", "value", "other"))).alias("values"),
    )
    return found.where("least != 1 or most != 1")


def spreads(numbers: DataFrame) -> DataFrame:
    """Per table, cell and role: the tries' range and coefficient of variation in each architecture, in messages/s."""
    own = tries(numbers.where("metric = 'rps'"))
    by_architecture = own.groupBy("cell", "role", "architecture").agg(
        fn.min("value").alias("least"), fn.max("value").alias("most")
    )
    return by_architecture.join(
        statistics.cells(own).select("cell", "role", "architecture", "cv"), ["cell", "role", "architecture"]
    )


def arithmetic(numbers: DataFrame) -> DataFrame:
    """One row: how many averages and kilobytes follow from the published tries, and how many do not."""
    keys = ("table", "architecture", *_AXES, "metric")
    averaged = numbers.groupBy(*keys).agg(
        fn.avg(fn.when(fn.col("try") != "avg", fn.col("value"))).alias("mean"),
        fn.max(fn.when(fn.col("try") == "avg", fn.col("value"))).alias("average"),
    )
    sizes = numbers.groupBy("table", "architecture", *_AXES, "try").agg(
        fn.max(fn.when(fn.col("metric") == "rps", fn.col("value") * fn.col("message_size") / 1000)).alias("expected"),
        fn.max(fn.when(fn.col("metric") == "kbps", fn.col("value"))).alias("kbps"),
    )
    off = averaged.agg(
        fn.count("*").alias("averages"),
        fn.sum(fn.when(fn.abs(fn.col("mean") - fn.col("average")) > 1, 1).otherwise(0)).alias("averages_off"),
    )
    wrong = sizes.agg(
        fn.count("*").alias("pairs"),
        fn.sum(fn.when(fn.abs(fn.col("expected") - fn.col("kbps")) > 1, 1).otherwise(0)).alias("pairs_off"),
    )
    return off.crossJoin(wrong)


def audit(numbers: DataFrame) -> tuple[Found, ...]:
    """The faults of the published tables, as rows of finding, where, evidence."""
    twice = [row.asDict(recursive=True) for row in repeated(numbers).collect()]
    return (
        *_twice_published(twice),
        *_advantage([row.asDict() for row in averages(numbers).collect()], twice),
        *_dispersion([row.asDict() for row in spreads(numbers).collect()]),
        *_sums(arithmetic(numbers).collect()[0].asDict()),
    )


def _twice_published(rows: Iterable[Found]) -> Iterable[Found]:
    for row in sorted(rows, key=lambda row: tuple(row[name] for name in ("architecture", *_AXES))):
        # Rates are printed as whole numbers: half a message/s on either side is rounding.
        slack = max(1 / one["value"] for one in row["values"])
        constant = row["most"] - row["least"] <= 2 * slack
        factor = f"every one of {row['tries']} tries is {row['least']:.2f} times" if constant else (
            f"the {row['tries']} tries are {row['least']:.2f} to {row['most']:.2f} times"
        )  # fmt: skip
        yield {
            "finding": "one cell, two published results",
            "where": f"{row['architecture']}, {row['message_size']} bytes, batch {row['batch_size']}, {row['mode']}, "
            f"{row['role']}",
            "evidence": f"in {row['other_table']} {factor} its value in {row['table']}: "
            + ", ".join(f"{one['other']:,.0f} and {one['value']:,.0f}" for one in row["values"]),
        }


def _advantage(rows: Sequence[Found], twice: Sequence[Found]) -> Iterable[Found]:
    """The advantage by batch size: a cost paid once a request should show most with one message a request."""
    disputed = {tuple(row[name] for name in _AXES) for row in twice}
    ranges: dict[int, tuple[float, float]] = {}
    for batch in sorted({row["batch_size"] for row in rows}):
        every, agreed = (
            sorted(r["published"] for r in rows if r["batch_size"] == batch and (all_ or not _is_in(r, disputed)))
            for all_ in (True, False)
        )
        ranges[batch] = (agreed[0], agreed[-1])
        without = f" ({agreed[0]:.2f} to {agreed[-1]:.2f} without the cell published twice)" if agreed != every else ""
        yield {
            "finding": f"advantage of {PROPOSAL} at batch size {batch}",
            "where": f"{PROPOSAL} / {BASELINE}, every cell of that batch size, messages/s",
            "evidence": f"{every[0]:.2f} to {every[-1]:.2f} times{without}",
        }
    greatest = max(ranges, key=lambda batch: ranges[batch][0])
    if greatest != min(ranges):
        yield {
            "finding": "the advantage is not where its cause should show most",
            "where": f"batch size {greatest}, not {min(ranges)}",
            "evidence": f"a cost paid once a request weighs most at {min(ranges)} message a request; there it is "
            f"at most {ranges[min(ranges)][1]:.2f}, at {greatest} at least {ranges[greatest][0]:.2f}",
        }


def _is_in(row: Found, cells: set[tuple[Any, ...]]) -> bool:
    return tuple(row[name] for name in _AXES) in cells


def _dispersion(rows: Sequence[Found]) -> Iterable[Found]:
    cvs = [row["cv"] for row in rows]
    yield {
        "finding": "spread of the tries, which the paper does not give",
        "where": f"{len(cvs)} cells, messages/s",
        "evidence": "coefficient of variation {:.1f} % to {:.1f} %, median {:.1f} %".format(
            *(100 * of(cvs) for of in (min, max, median))
        ),
    }
    ranges: dict[tuple[Any, ...], list[Found]] = {}
    for row in rows:
        ranges.setdefault((row["cell"], row["role"]), []).append(row)
    overlapping = [key for key, both in ranges.items() if max(r["least"] for r in both) <= min(r["most"] for r in both)]
    yield {
        "finding": "ranges of the two architectures overlap",
        "where": f"{len(overlapping)} of {len(ranges)} cells",
        "evidence": "the slowest try of the faster architecture is no faster than the fastest of the slower: "
        + ", ".join(f"{cell} {role}" for cell, role in sorted(overlapping)),
    }


def _sums(row: Found) -> Iterable[Found]:
    yield {
        "finding": "averages and kilobytes follow from the tries" if not row["averages_off"] + row["pairs_off"]
        else "averages or kilobytes do not follow from the tries",
        "where": f"{row['averages']} averages, {row['pairs']} pairs of messages/s and KB/s",
        "evidence": f"{row['averages_off']} averages and {row['pairs_off']} pairs are off by more than 1",
    }  # fmt: skip
