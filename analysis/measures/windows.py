"""From requests to sums by trial, role, window and slice of time, by Spark; all that follows needs no request.

A timed window is cut into slices of 20 ms from where it opens; a longer one has longer slices, so that a run's sums
are bounded by its windows. What was done before it opened and after it closed is summed apart, since costs include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from analysis.measures.rates import AFTER, BEFORE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SLICE_NS = 20_000_000
SLICES_MAX = 250  # of one window


def role_of_client(client: Column) -> Column:
    """production of a producer, consumption of a consumer."""
    return fn.when(client == "producer", "production").when(client == "consumer", "consumption")


def sums(trials: DataFrame, requests: DataFrame) -> DataFrame:
    """Per trial, role, window's number and slice: messages, requests, failures, the first send and the last end.

    A request that failed has no messages and no end. A whole window has one slice, number 0. Numbers are unique where
    they are timed, so a request is placed by its window's number alone.
    """
    done = (fn.col("status") == "ok") & (fn.col("messages") > 0)
    placed = requests.select(
        "trial_id", role_of_client(fn.col("role")).alias("role"), fn.col("window_number").alias("number"),
        "messages", "requests", "sent_ns", "done_ns", "status",
    ).join(fn.broadcast(_timed(trials)), ["trial_id", "number"], "left")  # fmt: skip
    return placed.groupBy("trial_id", "role", "number", _slice(done).alias("slice")).agg(
        fn.sum(fn.when(done, fn.col("messages")).otherwise(0)).alias("messages"),
        fn.sum(fn.when(done, fn.col("requests")).otherwise(0)).alias("requests"),
        fn.sum(fn.when(fn.col("status") != "ok", fn.col("requests")).otherwise(0)).alias("failed"),
        fn.sum(fn.when(fn.col("done_ns") < fn.col("sent_ns"), 1).otherwise(0)).alias("backwards"),
        fn.min("sent_ns").alias("first_ns"),
        fn.max(fn.when(done, fn.col("done_ns"))).alias("last_ns"),
    )


def _timed(trials: DataFrame) -> DataFrame:
    """The timed windows: when they open and close, and how long their slices are."""
    opened, closed = fn.col("w.opened_ns"), fn.col("w.closed_ns")
    long = fn.ceil((closed - opened) / SLICES_MAX).cast("bigint")
    return (
        trials.select("trial_id", fn.explode("windows").alias("w"))
        .where(opened.isNotNull())
        .select(
            "trial_id",
            fn.col("w.number").alias("number"),
            opened.alias("opened_ns"),
            closed.alias("closed_ns"),
            fn.greatest(fn.lit(SLICE_NS).cast("bigint"), long).alias("slice_ns"),
        )
    )


def _slice(done: Column) -> Column:
    """The slice in which a request ended: its end belongs to it, its beginning to the one before."""
    end = fn.col("done_ns")
    within = fn.floor((end - fn.col("opened_ns") - 1) / fn.col("slice_ns")).cast("int")
    return (
        fn.when(fn.col("opened_ns").isNull(), 0)
        .when(~done | (end <= fn.col("opened_ns")), BEFORE)
        .when(end > fn.col("closed_ns"), AFTER)
        .otherwise(within)
    )
