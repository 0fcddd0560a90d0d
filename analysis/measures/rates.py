"""From requests to one row a trial and role: how many messages, in what time, and whether the rate may be believed.

Every function takes DataFrames and returns one. The rates come from the request rows alone; the counts of the trial's
own row are only compared with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHORT_WINDOW_MS = 250
NOISY_SPREAD = 1.15
AXES = ("message_size", "batch_size", "mode")
CELL = ("cell", "others", *AXES)
ARCHITECTURE = ("architecture", "architecture_rank")
# The columns of a trial in its row of rates: fewer columns compile faster, which is most of an ordinary run's time.
_CARRIED = (
    *("trial_id", "kind", "cell", *AXES, *ARCHITECTURE, "system", "try", "position"),
    *("sent", "acknowledged", "stored", "consumed", "verdict", "reason"),
)
MEASURED = "measured"
CALIBRATION = "calibration"


def others(cell: Column) -> Column:
    """The axes of a cell besides message size, batch size and mode: "brokers=5", or nothing."""
    named = "|".join(AXES)
    axes = fn.filter(fn.split(cell, ","), lambda part: part.contains("=") & ~part.rlike(f"^({named})="))
    return fn.array_join(axes, ",")


def windows(requests: DataFrame) -> DataFrame:
    """Per trial and role: the timed window, and its messages and requests.

    Production lasts from the first send to the last acknowledgement, consumption from the first fetch to the last
    message received; a request that failed opens a window but never closes one.
    """
    done = (fn.col("status") == "ok") & (fn.col("messages") > 0)
    role = fn.when(fn.col("role") == "producer", "production").when(fn.col("role") == "consumer", "consumption")
    return requests.groupBy("trial_id", role.alias("role")).agg(
        fn.min("sent_ns").alias("first_ns"),
        fn.max(fn.when(done, fn.col("done_ns"))).alias("last_ns"),
        fn.sum(fn.when(done, fn.col("messages")).otherwise(0)).alias("messages_done"),
        fn.sum(fn.when(done, fn.col("requests")).otherwise(0)).alias("requests_done"),
        fn.sum(fn.when(fn.col("status") != "ok", fn.col("requests")).otherwise(0)).alias("requests_failed"),
        fn.sum(fn.when(fn.col("done_ns") < fn.col("sent_ns"), 1).otherwise(0)).alias("backwards"),
    )


def rates(trials: DataFrame, requests: DataFrame) -> DataFrame:
    """One row a trial and role, rates empty where the trial is not valid, with the reason.

    `spread` and `noisy` say how far the calibration trials of the trial's block differ.
    """
    timed = _roles(trials).join(windows(requests), ["trial_id", "role"], "left")
    window_s = (fn.col("last_ns") - fn.col("first_ns")) / 1e9
    every_role = Window.partitionBy("trial_id")
    judged = (
        timed.withColumn("found", _fault())
        .withColumn("reason", fn.max("found").over(every_role))
        .withColumn("verdict", fn.when(fn.col("reason").isNull(), "valid").otherwise(_kind_of_fault()))
        .withColumn("reason", fn.coalesce("reason", fn.lit("")))
        .withColumn("window_s", window_s)
        .withColumn("others", others(fn.col("cell")))
    )
    rps = fn.when(fn.col("verdict") == "valid", fn.col("messages_done") / fn.col("window_s"))
    return (
        judged.withColumn("rps", rps)
        .withColumn("kbps", fn.col("rps") * fn.col("message_size") / 1000)
        .withColumn("short_window", fn.col("window_s") * 1000 < SHORT_WINDOW_MS)
        .withColumn("spread", _spread())
        .withColumn("noisy", fn.max("spread").over(Window.partitionBy("try")) > NOISY_SPREAD)
        .drop("found", "backwards")
    )


def _spread() -> Column:
    """In each block and role, the faster calibration trial's rate over the slower one's.

    A block without two valid calibration trials says nothing about its noise: empty.
    """
    block = Window.partitionBy("try", "role")
    rps = fn.when(fn.col("kind") == CALIBRATION, fn.col("rps"))
    return fn.when(fn.count(rps).over(block) > 1, fn.max(rps).over(block) / fn.min(rps).over(block))


def _roles(trials: DataFrame) -> DataFrame:
    """Each trial once for each role that it has."""
    roles = fn.concat(
        fn.when(fn.col("producers") > 0, fn.array(fn.lit("production"))).otherwise(fn.array()),
        fn.when(fn.col("consumers") > 0, fn.array(fn.lit("consumption"))).otherwise(fn.array()),
    )
    kept = trials.where(fn.col("kind").isin(MEASURED, CALIBRATION))
    return kept.select(*_CARRIED, fn.explode(roles).alias("role"))


def _fault() -> Column:
    """Why this role of the trial cannot be rated, or nothing. The runner's own verdict comes first."""
    expected = fn.when(fn.col("role") == "production", fn.col("acknowledged")).otherwise(fn.col("consumed"))
    said = fn.when(fn.col("reason") != "", fn.col("reason")).otherwise(fn.col("verdict"))
    differ = fn.format_string("the request rows hold %s messages, the trial says %s", "messages_done", expected)
    backwards = fn.format_string("%s request rows end before they begin", "backwards")
    nothing = fn.format_string("no message in %s", "role")
    return (
        fn.when(fn.col("verdict") != "valid", said)
        .when(fn.col("messages_done").isNull(), fn.format_string("no request rows of %s", "role"))
        .when(fn.col("backwards") > 0, backwards)
        .when(fn.col("messages_done") == 0, nothing)
        .when(fn.col("last_ns") <= fn.col("first_ns"), fn.format_string("the window of %s has no length", "role"))
        .when(fn.col("messages_done") != expected, differ)
    )


def _kind_of_fault() -> Column:
    """A trial that failed for the runner stays failed; a fault that only this analysis finds is invalid."""
    return fn.when(fn.col("verdict") == "failed", "failed").otherwise("invalid")


def valid(rated: DataFrame) -> DataFrame:
    """The rows of valid measured trials."""
    return rated.where((fn.col("kind") == MEASURED) & (fn.col("verdict") == "valid"))


def measured(rated: DataFrame, *metrics: str) -> DataFrame:
    """The valid rates, long: one row a trial, role and metric (`value`)."""
    values = fn.explode(fn.array(*(fn.struct(fn.lit(m).alias("metric"), fn.col(m).alias("value")) for m in metrics)))
    return valid(rated).select(*CELL, *ARCHITECTURE, "role", "try", values.alias("v")).select("*", "v.*").drop("v")
