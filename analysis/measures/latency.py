"""Latencies from histograms, merged bucket by bucket, and rates over time.

The buckets are those of `workloads.results.bucket_of`: a value is known to better than one part in 1,024. A quantile is
the highest value of the bucket that reaches it, so it is never understated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as fn

from analysis.measures.rates import ARCHITECTURE, CELL, valid

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
_PRECISION_BITS = 10
SLICE_MS = 100
SLICES_MAX = 300  # of one window: longer ones have longer slices


def bucket_of(value: Column) -> Column:
    """The histogram bucket of a whole number of nanoseconds, as `results.bucket_of` computes it."""
    shift = fn.greatest(fn.lit(0), _bits(value) - (_PRECISION_BITS + 1))
    return fn.call_function("shiftleft", shift, fn.lit(_PRECISION_BITS)) + fn.call_function("shiftright", value, shift)


def _bits(value: Column) -> Column:
    """How many bits a whole number has, 1 for 0.

    A logarithm in floating point is off by one beside some powers of two, and is put right; the obvious way, to count
    the digits of `bin(value)`, makes a text of every request and takes three times as long.
    """
    one = fn.lit(1).cast("bigint")
    near = fn.least(fn.floor(fn.log2(fn.greatest(value, one).cast("double"))).cast("int"), fn.lit(62))
    too_many = fn.when(fn.call_function("shiftleft", one, near) > value, 1).otherwise(0)
    too_few = fn.when(fn.call_function("shiftright", value, near) > 1, 1).otherwise(0)
    return near + 1 - too_many + too_few


def bucket_highest(index: Column) -> Column:
    """The highest value of a bucket, in nanoseconds."""
    index = index.cast("bigint")
    shift = fn.greatest(fn.lit(0), fn.shiftright(index, _PRECISION_BITS).cast("int") - 1)
    base = index - fn.call_function("shiftleft", shift.cast("bigint"), fn.lit(_PRECISION_BITS))
    return fn.call_function("shiftleft", base + 1, shift) - 1


def histograms(requests: DataFrame, latency: DataFrame) -> DataFrame:
    """Per trial, kind of latency and bucket: a count; a bucket may have several rows.

    A row of one request is its own histogram; a slice brings one. Failed requests and slices without a histogram
    have no latency.
    """
    took = fn.col("done_ns") - fn.col("sent_ns")
    kind = fn.concat("role", fn.lit(" request")).alias("kind")
    answered = requests.where((fn.col("status") == "ok") & (took >= 0))
    # Apart, because a request on its own needs no array: arrays took most of the time of a hundred million rows.
    sliced = fn.coalesce(fn.size("latency_index") > 0, fn.lit(False))
    alone = answered.where(~sliced & (fn.col("requests") == 1)).select(
        "trial_id", kind, bucket_of(took).alias("bucket"), fn.lit(1).cast("bigint").alias("count")
    )
    by_slice = answered.where(sliced).select("trial_id", kind, "latency_index", "latency_count")
    by_client = latency.select("trial_id", fn.translate("kind", "_", " "), "latency_index", "latency_count")
    pair = fn.explode(fn.arrays_zip("latency_index", "latency_count")).alias("pair")
    return alone.union(
        by_slice.union(by_client)
        .select("trial_id", "kind", pair)
        .select("trial_id", "kind", fn.col("pair.latency_index").cast("bigint"), fn.col("pair.latency_count"))
    )


def quantiles(counted: DataFrame, rated: DataFrame) -> DataFrame:
    """Per cell, architecture and kind: the count, and the quantiles in nanoseconds, over all valid tries together."""
    keys = (*CELL, *ARCHITECTURE)
    trials = valid(rated).select("trial_id", *keys).distinct()
    # One short name for a cell and architecture is cheaper to group millions of rows by than all its columns.
    named = trials.withColumn("name", fn.min("trial_id").over(Window.partitionBy(*keys))).cache()
    short = fn.broadcast(named.select("trial_id", "name"))
    merged = counted.join(short, "trial_id").groupBy("name", "kind", "bucket").agg(fn.sum("count").alias("count"))
    all_of = Window.partitionBy("name", "kind")
    reached = merged.withColumn("upto", fn.sum("count").over(all_of.orderBy("bucket"))).withColumn(
        "total", fn.sum("count").over(all_of)
    )
    # The smallest bucket at or below which lie at least that share of all; whole numbers, so that 0.9 of 10 is 9.
    columns = [
        fn.min(fn.when(fn.col("upto") * 1000 >= fn.col("total") * round(share * 1000), fn.col("bucket"))).alias(name)
        for name, share in QUANTILES.items()
    ]
    found = reached.groupBy("name", "kind").agg(fn.max("total").alias("n"), *columns)
    cells = fn.broadcast(named.where("trial_id = name").drop("trial_id"))
    highest = [bucket_highest(fn.col(name)).alias(f"{name}_ns") for name in QUANTILES]
    return found.join(cells, "name").select(*keys, "kind", "n", *highest)


def over_time(requests: DataFrame, rated: DataFrame, cell: str) -> DataFrame:
    """For one cell, per trial, role and slice of the window: the slice's middle (`at_s`) and messages/s.

    A slice is 100 ms, or a whole number of them where a window would have more than 300.
    """
    every = fn.ceil(fn.col("window_s") * 1000 / (SLICE_MS * SLICES_MAX)).cast("bigint")
    trials = valid(rated).where(fn.col("cell") == cell).select(
        "trial_id", "role", "first_ns", "last_ns", "try", *CELL, *ARCHITECTURE,
        (fn.greatest(fn.lit(1).cast("bigint"), every) * (SLICE_MS * 1_000_000)).alias("slice_ns"),
    )  # fmt: skip
    client = fn.when(fn.col("role") == "producer", "production").otherwise("consumption").alias("role")
    done = requests.where("status = 'ok' and messages > 0").select("trial_id", client, "done_ns", "messages")
    placed = done.join(fn.broadcast(trials), ["trial_id", "role"]).withColumn(
        "slice", fn.floor((fn.col("done_ns") - fn.col("first_ns")) / fn.col("slice_ns"))
    )
    # The last slice is cut off by the window's end: left out, its rate would be too low.
    whole = placed.where(fn.col("first_ns") + (fn.col("slice") + 1) * fn.col("slice_ns") <= fn.col("last_ns"))
    slice_s = fn.col("slice_ns") / 1e9
    return (
        whole.groupBy(*CELL, *ARCHITECTURE, "role", "try", "slice", "slice_ns")
        .agg(fn.sum("messages").alias("messages"))
        .withColumn("rps", fn.col("messages") / slice_s)
        .withColumn("at_s", (fn.col("slice") + 0.5) * slice_s)
        .drop("messages", "slice_ns")
    )
