"""The costs of an architecture: coordination operations, processor time, memory, and the requests that really happened.

Costs are counted by the brokers and the runner per trial, window and process. Seconds are summed as whole
microseconds, so that the sums do not depend on the order in which rows arrive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from analysis.measures.rates import ARCHITECTURE, CELL, MEASURED, valid

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Every architecture of a run should share these, cell by cell; the report shows whether they do.
HELD_EQUAL = (
    "system",
    "driver",
    "brokers",
    "partitions",
    "replication_factor",
    "acks",
    "fsync",
    "producers",
    "consumers",
    "commit",
    "fetch",
    "rate",
    "topology",
    "rtt_ms",
)
_GROUP = (*CELL, *ARCHITECTURE)
# A window is production or consumption in split mode; in streaming, where the two overlap, it is both.
_KEYS = (*_GROUP, "window")


def _windows(rated: DataFrame) -> DataFrame:
    """Per valid trial and window, its messages; a message that streaming produces and consumes counts once."""
    produced = fn.array(fn.lit("production"), fn.lit("both"))
    names = fn.when(fn.col("role") == "production", produced).otherwise(fn.array(fn.lit("consumption")))
    return valid(rated).select("trial_id", *_GROUP, "messages_done", fn.explode(names).alias("window"))


def _entries(trials: DataFrame, rated: DataFrame, column: str) -> DataFrame:
    """The entries `e` of a trial's array column, with the cell and the window that they were counted in."""
    entries = trials.select("trial_id", fn.explode(column).alias("e")).withColumn("window", fn.col("e.window"))
    return entries.join(fn.broadcast(_windows(rated)), ["trial_id", "window"])


def _messages(rated: DataFrame) -> DataFrame:
    """Per cell, architecture and window: the messages of all valid tries."""
    return _windows(rated).groupBy(*_KEYS).agg(fn.sum("messages_done").alias("messages"))


def _microseconds(seconds: Column) -> Column:
    return fn.round(seconds * 1_000_000).cast("bigint")


def coordination(trials: DataFrame, rated: DataFrame) -> DataFrame:
    """Per cell, architecture, window and operation, for 1,000 messages: operations, bytes, and milliseconds waited.

    A try without the operation has no entry; its messages count all the same.
    """
    summed = (
        _entries(trials, rated, "coordination")
        .groupBy(*_KEYS, fn.col("e.operation").alias("operation"))
        .agg(
            fn.sum("e.count").alias("count"),
            fn.sum("e.bytes").alias("bytes"),
            fn.sum(_microseconds(fn.col("e.wait_s"))).alias("wait_us"),
        )
    )
    thousands = fn.col("messages") / 1000
    return (
        # An operation of time and no message (a local write that a commit waits for) is coordination as well.
        summed.where("count > 0 or wait_us > 0")
        .join(fn.broadcast(_messages(rated)), list(_KEYS))
        .select(
            *_KEYS,
            "operation",
            (fn.col("count") / thousands).alias("operations"),
            (fn.col("bytes") / thousands).alias("bytes"),
            (fn.col("wait_us") / 1000 / thousands).alias("wait_ms"),
        )
    )


def resources(trials: DataFrame, rated: DataFrame) -> DataFrame:
    """Per cell, architecture, window and kind of process: processor time a message, memory, disk, network, cores.

    `cores_busiest` is the most of a core that one such process used: near 1, it likely limits the rate. A column
    that no process of the kind counts (null in the raw records) stays empty.
    """
    cpu_us = _microseconds(fn.col("e.cpu_user_s") + fn.col("e.cpu_system_s"))
    wall_us = _microseconds(fn.col("e.wall_s"))
    summed = (
        _entries(trials, rated, "resources")
        .groupBy(*_KEYS, fn.col("e.role").alias("process"))
        .agg(
            fn.sum(cpu_us).alias("cpu_us"),
            fn.max(fn.when(wall_us > 0, cpu_us / wall_us)).alias("cores_busiest"),
            fn.max("e.rss_max_bytes").alias("rss_max_bytes"),
            fn.sum("e.written_bytes").alias("written"),
            fn.sum("e.received_bytes").alias("received"),
            fn.sum("e.sent_bytes").alias("sent"),
            fn.sum(_microseconds(fn.col("e.gc_pause_s"))).alias("gc_pause_us"),
            fn.sum(_microseconds(fn.col("e.coordination_cpu_s"))).alias("coordination_cpu_us"),
        )
    )
    return summed.join(fn.broadcast(_messages(rated)), list(_KEYS)).select(
        *_KEYS,
        "process",
        (fn.col("cpu_us") / fn.col("messages")).alias("cpu_us_per_message"),
        "cores_busiest",
        (fn.col("rss_max_bytes") / (1 << 20)).alias("rss_max_mb"),
        (fn.col("written") / fn.col("messages")).alias("written_bytes_per_message"),
        (fn.col("received") / fn.col("messages")).alias("received_bytes_per_message"),
        (fn.col("sent") / fn.col("messages")).alias("sent_bytes_per_message"),
        (fn.col("gc_pause_us") / fn.col("messages")).alias("gc_pause_us_per_message"),
        (fn.col("coordination_cpu_us") / fn.col("messages")).alias("coordination_cpu_us_per_message"),
    )


def batches(trials: DataFrame, rated: DataFrame) -> DataFrame:
    """Per cell, architecture and role: messages a request, as clients and as brokers counted them."""
    role = fn.when(fn.col("e.operation") == "produce", "production").when(
        fn.col("e.operation") == "fetch", "consumption"
    )
    by_clients = (
        valid(rated)
        .groupBy(*_GROUP, "role")
        .agg(fn.sum("messages_done").alias("messages"), fn.sum("requests_done").alias("requests"))
    )
    by_brokers = (
        _entries(trials, rated, "broker_requests")
        .groupBy(*_GROUP, role.alias("role"))
        .agg(fn.sum("e.messages").alias("broker_messages"), fn.sum("e.requests").alias("broker_requests"))
    )
    return by_clients.join(fn.broadcast(by_brokers), [*_GROUP, "role"], "left").select(
        *_GROUP,
        "role",
        _per("messages", "requests").alias("client"),
        _per("broker_messages", "broker_requests").alias("broker"),
    )


def _per(above: str, below: str) -> Column:
    return fn.when(fn.col(below) > 0, fn.col(above) / fn.col(below))


def equality(trials: DataFrame) -> DataFrame:
    """Per setting that every architecture should share: its values, and in how many cells architectures differ.

    A setting that a system does not tell is not known to be equal.
    """
    texts = [fn.struct(fn.lit(name).alias("setting"), _setting(name).alias("value")) for name in HELD_EQUAL]
    settings = trials.where(fn.col("kind") == MEASURED).select("cell", fn.explode(fn.array(*texts)).alias("s"))
    in_cells = settings.groupBy("cell", "s.setting").agg(fn.collect_set("s.value").alias("found"))
    differ = fn.sum(fn.when(fn.size("found") > 1, 1).otherwise(0))
    return in_cells.groupBy("setting").agg(
        fn.array_join(fn.array_sort(fn.array_distinct(fn.flatten(fn.collect_list("found")))), ", ").alias("found"),
        differ.alias("cells_that_differ"),
    )


def _setting(name: str) -> Column:
    return fn.coalesce(fn.col(name).cast("string"), fn.lit("max" if name == "rate" else "not known"))
