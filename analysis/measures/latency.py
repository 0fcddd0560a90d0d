"""Latencies from histograms, merged bucket by bucket, and the rate over time of one cell. By Spark.

At full speed a latency is the length of a backlog, so it is told at a fixed load alone; records of before, and the
driver whose rows are single requests, have it at full speed too.

The buckets are those of `workloads.results.bucket_of`: a value is known to better than one part in 1,024. A quantile is
the highest value of the bucket that reaches it, so it is never understated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as fn

from analysis.findings import Found
from analysis.former import VERSION
from analysis.measures.rates import ARCHITECTURE, CELL, Sums
from analysis.measures.windows import role_of_client

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
_PRECISION_BITS = 10
_SINGLE_REQUESTS = "grpc"  # the driver
_ACKNOWLEDGED, _RECEIVED = "producer request", "end to end"
_GROUP = (*CELL, *ARCHITECTURE)
Row = dict[str, Any]
SLICE_MS = 20
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


def groups(trials: Iterable[Found], valid: Iterable[Found]) -> tuple[list[Row], pa.Table]:
    """The cells and architectures whose latency is told, and the number in that list of each window of theirs."""
    import pyarrow as pa

    told = {t["trial_id"] for t in trials if _is_told(t)}
    windows: dict[tuple[str, int], tuple[object, ...]] = {}
    for row in valid:
        if row["trial_id"] in told:
            windows[row["trial_id"], row["number"]] = tuple(row[name] for name in _GROUP)
    names = sorted(set(windows.values()), key=str)
    places = {name: place for place, name in enumerate(names)}
    columns = {
        "trial_id": pa.array([trial for trial, _ in windows], pa.string()),
        "number": pa.array([number for _, number in windows], pa.int32()),
        "name": pa.array([places[name] for name in windows.values()], pa.int32()),
    }
    return [dict(zip(_GROUP, name, strict=True)) for name in names], pa.table(columns)


def _is_told(trial: Found) -> bool:
    return trial["schema_version"] == VERSION or trial["driver"] == _SINGLE_REQUESTS or trial["load"] is not None


def histograms(requests: DataFrame, latency: DataFrame) -> DataFrame:
    """Per trial, window, kind of latency and bucket: a count; a bucket may have several rows.

    A row of one request is its own histogram; a slice brings one. Failed requests and slices without a histogram
    have no latency.
    """
    took = fn.col("done_ns") - fn.col("sent_ns")
    number, kind = fn.col("window_number").alias("number"), fn.concat("role", fn.lit(" request")).alias("kind")
    answered = requests.where((fn.col("status") == "ok") & (took >= 0))
    # Apart, because a request on its own needs no array: arrays took most of the time of a hundred million rows.
    sliced = fn.coalesce(fn.size("latency_index") > 0, fn.lit(False))
    alone = answered.where(~sliced & (fn.col("requests") == 1)).select(
        "trial_id", number, kind, bucket_of(took).alias("bucket"), fn.lit(1).cast("bigint").alias("count")
    )
    by_slice = answered.where(sliced).select("trial_id", number, kind, "latency_index", "latency_count")
    by_client = latency.select("trial_id", number, fn.translate("kind", "_", " "), "latency_index", "latency_count")
    pair = fn.explode(fn.arrays_zip("latency_index", "latency_count")).alias("pair")
    return alone.union(
        by_slice.union(by_client)
        .select("trial_id", "number", "kind", pair)
        .select("trial_id", "number", "kind", fn.col("pair.latency_index").cast("bigint"), fn.col("pair.latency_count"))
    )


def quantiles(counted: DataFrame, named: DataFrame) -> DataFrame:
    """Per name and kind: the count, and the quantiles in nanoseconds, over all windows of that name together."""
    merged = (
        counted.join(fn.broadcast(named), ["trial_id", "number"])
        .groupBy("name", "kind", "bucket")
        .agg(fn.sum("count").alias("count"))
    )
    all_of = Window.partitionBy("name", "kind")
    reached = merged.withColumn("upto", fn.sum("count").over(all_of.orderBy("bucket"))).withColumn(
        "total", fn.sum("count").over(all_of)
    )
    # The smallest bucket at or below which lie at least that share of all; whole numbers, so that 0.9 of 10 is 9.
    columns = [
        fn.min(fn.when(fn.col("upto") * 1000 >= fn.col("total") * round(share * 1000), fn.col("bucket"))).alias(name)
        for name, share in QUANTILES.items()
    ]
    highest = [bucket_highest(fn.col(name)).alias(f"{name}_ns") for name in QUANTILES]
    found = reached.groupBy("name", "kind").agg(fn.max("total").alias("n"), *columns)
    return found.select("name", "kind", "n", *highest)


def latency(found: Iterable[Found], names: Sequence[Row], trials: Iterable[Found]) -> list[Row]:
    """The quantiles at full speed. The slices of a driver that hides its requests say nothing about a consumer's."""
    before = {t["cell"] for t in trials if t["schema_version"] == VERSION}
    loaded = {t["cell"] for t in trials if t["load"] is not None}
    return [
        names[row["name"]] | {name: value for name, value in row.items() if name != "name"}
        for row in found
        if (cell := names[row["name"]]["cell"]) not in loaded and (cell in before or row["kind"] == _ACKNOWLEDGED)
    ]


def load(found: Iterable[Found], names: Sequence[Row], trials: Iterable[Found], valid: Iterable[Found]) -> list[Row]:
    """Per cell at a fixed load and architecture: what was asked for and achieved, and the latencies at both ends."""
    asked = {t["cell"]: t for t in trials if t["load"] is not None}
    by_kind = {(row["name"], row["kind"]): row for row in found}
    achieved: dict[tuple[object, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in valid:
        # A window of few messages has no rate that could be compared, and here none is.
        if row["cell"] in asked and row["role"] == "production" and row["messages"]:
            achieved[tuple(row[name] for name in _GROUP)][row["try"]].append(row["messages"] / row["window_s"])
    rows = []
    for place, name in enumerate(names):
        blocks = achieved.get(tuple(name.values()))
        if name["cell"] in asked and blocks:
            rows.append({
                **name,
                **{column: asked[name["cell"]][column] for column in ("load", "rate")},
                "achieved": fmean(fmean(blocks[block]) for block in sorted(blocks)),
                "n": len(blocks),
                **_both("ack", by_kind.get((place, _ACKNOWLEDGED))),
                **_both("e2e", by_kind.get((place, _RECEIVED))),
            })  # fmt: skip
    return rows


def _both(name: str, row: Found | None) -> Row:
    """Median and 99th percentile in microseconds."""
    return {f"{name}_{q}_us": None if row is None else row[f"{q}_ns"] / 1000 for q in ("p50", "p99")}


def looked_at(
    valid: Iterable[Found], sums: Mapping[tuple[str, str, int], Sums], cell: str
) -> tuple[list[Row], pa.Table]:
    """The windows of one cell whose rate over time is shown, the first of each block, and their slices for Spark.

    A slice is 20 ms, or a whole number of them where a window would have more than 300.
    """
    import pyarrow as pa

    first: dict[tuple[object, ...], Found] = {}
    for row in sorted(valid, key=lambda row: int(row["round"])):
        if row["cell"] == cell and row["rps"] is not None:
            first.setdefault((row["architecture"], row["try"], row["role"]), row)
    windows = list(first.values())
    own = [sums[row["trial_id"], row["role"], row["number"]] for row in windows]
    ends = [(one.first_ns, one.last_ns or one.first_ns) for one in own]
    unit = SLICE_MS * 1_000_000
    lengths = [unit * max(1, -(-(last - start) // (unit * SLICES_MAX))) for start, last in ends]
    columns = {
        "trial_id": pa.array([row["trial_id"] for row in windows], pa.string()),
        "role": pa.array([row["role"] for row in windows], pa.string()),
        "number": pa.array([row["number"] for row in windows], pa.int32()),
        "place": pa.array(range(len(windows)), pa.int32()),
        "first_ns": pa.array([start for start, _ in ends], pa.int64()),
        "last_ns": pa.array([last for _, last in ends], pa.int64()),
        "slice_ns": pa.array(lengths, pa.int64()),
    }
    names = [{name: row[name] for name in (*_GROUP, "role", "try")} for row in windows]
    return names, pa.table(columns)


def slices(requests: DataFrame, windows: DataFrame) -> DataFrame:
    """Per window looked at (`place`) and slice: messages."""
    done = requests.where("status = 'ok' and messages > 0").select(
        "trial_id", role_of_client(fn.col("role")).alias("role"), fn.col("window_number").alias("number"),
        "done_ns", "messages",
    )  # fmt: skip
    placed = done.join(fn.broadcast(windows), ["trial_id", "role", "number"]).withColumn(
        "slice", fn.floor((fn.col("done_ns") - fn.col("first_ns")) / fn.col("slice_ns"))
    )
    # The last slice is cut off by the window's end: left out, its rate would be too low.
    whole = placed.where(fn.col("first_ns") + (fn.col("slice") + 1) * fn.col("slice_ns") <= fn.col("last_ns"))
    return whole.groupBy("place", "slice", "slice_ns").agg(fn.sum("messages").alias("messages"))


def over_time(found: Iterable[Found], names: Sequence[Row]) -> list[Row]:
    """Per window looked at and slice: the slice's middle (`at_s`) and messages/s."""
    return [
        names[row["place"]]
        | {
            "slice": row["slice"],
            "rps": row["messages"] / (row["slice_ns"] / 1e9),
            "at_s": (row["slice"] + 0.5) * (row["slice_ns"] / 1e9),
        }
        for row in found
    ]
