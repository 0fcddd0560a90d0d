"""Raw records of schema version 2: their columns, and what they lack, filled in.

A trial then had one window of production and one of consumption, or one of both; a window lasted from the first send to
the last acknowledgement, and what other programs did meanwhile was not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as fn

from workloads import results

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

VERSION: Final = 2
SYSTEM, SYSTEM_OF_BEFORE = "system", "brokerlab"  # the first folders lack this column; its value was always this
_DROPPED: Final = ("messages", "to_consume")  # what a trial set out to do
_NEW: Final = {
    results.TRIALS: ("settings", "in_flight", "fetch_ahead", "load", "windows"),
    results.REQUESTS: ("window_number",),
    results.LATENCY: ("window_number",),
}
_ENTRIES: Final = ("resources", "coordination", "broker_requests")  # each then had no number
_NUMBER: Final = 1


def schema(kind: str, now: pa.Schema) -> pa.Schema:
    """The columns of version 2, from those of today."""
    fields = [field for field in now if field.name not in _NEW[kind]]
    if kind != results.TRIALS:
        return pa.schema(fields)
    fields = [_without_number(field) if field.name in _ENTRIES else field for field in fields]
    at = 1 + [field.name for field in fields].index("rtt_ms")
    return pa.schema([*fields[:at], *(pa.field(name, pa.int64()) for name in _DROPPED), *fields[at:]])


def _without_number(field: pa.Field) -> pa.Field:
    entry = field.type.value_type
    return pa.field(field.name, pa.list_(pa.struct([part for part in entry if part.name != "number"])))


def without_system(found: pa.Schema) -> pa.Schema:
    """The columns of the first folders of version 2."""
    return pa.schema([field for field in found if field.name != SYSTEM])


def filled(kind: str, records: DataFrame, types: dict[str, str]) -> DataFrame:
    """Records of version 2 as ones of today, whose columns have these `types`."""
    if kind != results.TRIALS:
        return records.withColumn("window_number", fn.lit(_NUMBER))
    for name in ("settings", "in_flight", "fetch_ahead", "load"):
        records = records.withColumn(name, fn.lit(None).cast(types[name]))
    for name in _ENTRIES:
        records = records.withColumn(name, fn.transform(name, _numbered))
    split = fn.array(_window("production"), _window("consumption"))
    windows = fn.when(fn.col("mode") == "streaming", fn.array(_window("both"))).otherwise(split)
    return records.fillna(SYSTEM_OF_BEFORE, [SYSTEM]).withColumn("windows", windows).drop(*_DROPPED)


def _numbered(entry: Column) -> Column:
    return entry.withField("number", fn.lit(_NUMBER))


def _window(name: str) -> Column:
    """A window that is whole, of which only the name is known."""
    known: dict[str, object] = {"number": _NUMBER, "window": name, "round": 1, "attempt": 1}
    return fn.struct(*(_field(field, known.get(field.name)) for field in results.windows_type()))


def _field(field: pa.Field, value: object) -> Column:
    from pyspark.sql.pandas.types import from_arrow_type

    return fn.lit(value).cast(from_arrow_type(field.type)).alias(field.name)
