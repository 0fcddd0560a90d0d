"""Raw records of schema version 2, as runs wrote them before windows had rounds. Their schema is spelt out here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.made_records import MadeTrial, latency_rows, manifest, request_table, trial_row
from workloads import results

_TEXT, _WHOLE, _INT, _REAL = pa.string(), pa.int64(), pa.int32(), pa.float64()


def _columns(kind: pa.DataType, names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, kind) for name in names.split()]


def _entries(*parts: list[tuple[str, pa.DataType]]) -> pa.DataType:
    return pa.list_(pa.struct([field for part in parts for field in part]))


RESOURCES = _entries(
    _columns(_TEXT, "role node window"), _columns(_REAL, "wall_s cpu_user_s cpu_system_s"),
    _columns(_WHOLE, "rss_max_bytes written_bytes received_bytes sent_bytes"),
    _columns(_REAL, "gc_pause_s coordination_cpu_s"),
)  # fmt: skip
COORDINATION = _entries(
    _columns(_TEXT, "node window operation"), _columns(_WHOLE, "count bytes"), _columns(_REAL, "wait_s")
)  # fmt: skip
BROKER_REQUESTS = _entries(_columns(_TEXT, "node window operation"), _columns(_WHOLE, "requests messages bytes"))
TRIALS = pa.schema([
    ("schema_version", _INT), *_columns(_TEXT, "spec_hash trial_id kind cell"), ("experiments", pa.list_(_TEXT)),
    ("architecture", _TEXT), ("architecture_rank", _INT), ("system", _TEXT), *_columns(_INT, "try position"),
    ("mode", _TEXT), ("message_size", _WHOLE), ("batch_size", _INT), ("driver", _TEXT),
    *_columns(_INT, "brokers partitions replication_factor acks"), ("fsync", _TEXT),
    *_columns(_INT, "producers consumers"), *_columns(_TEXT, "commit fetch"), ("rate", _REAL),
    *_columns(_TEXT, "topology rtt_ms"),
    *_columns(_WHOLE, "messages to_consume sent acknowledged stored consumed"),
    *_columns(_REAL, "create_topic_s connect_s join_s"), *_columns(_TEXT, "verdict reason"),
    ("resources", RESOURCES), ("coordination", COORDINATION), ("broker_requests", BROKER_REQUESTS),
])  # fmt: skip
_HISTOGRAM = [("latency_index", pa.list_(_INT)), ("latency_count", pa.list_(_WHOLE))]
REQUESTS = pa.schema([
    *_columns(_TEXT, "trial_id role"), *_columns(_INT, "client partition requests"),
    *_columns(_WHOLE, "messages bytes sent_ns done_ns"), ("status", _TEXT), *_HISTOGRAM,
])  # fmt: skip
LATENCY = pa.schema([("trial_id", _TEXT), ("client", _INT), ("kind", _TEXT), *_HISTOGRAM])


def write(folder: Path, trials: Iterable[MadeTrial], **changed: Any) -> Path:
    """Write these trials, of one round each, and return the folder. `changed`: columns of every trial."""
    for made in trials:
        assert (made.rounds, made.lead_s) == (1, 0), "version 2 knew one whole window for each end"
        row = trial_row(made) | {"schema_version": 2, "messages": made.messages, "to_consume": made.messages}
        _write(folder / results.TRIALS, made, [row | changed], TRIALS)
        _write(folder / results.REQUESTS, made, request_table(made).to_pylist(), REQUESTS)
        _write(folder / results.LATENCY, made, latency_rows(made), LATENCY)
    (folder / results.MANIFEST).write_text(json.dumps(manifest(schema_version=2)))
    return folder


def _write(folder: Path, made: MadeTrial, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    """Columns and parts of entries that the schema does not name are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / results.file_name(made.trial_id))


def calibrations(tries: int, spread: float = 1.0) -> list[MadeTrial]:
    """The two calibration trials of every block, the second slower by `spread`."""
    return [
        MadeTrial(
            "static",
            production_s=1.0 * (spread if place == "close" else 1),
            try_=number,
            kind="calibration",
            name=f"calibration/{number}/{place}",
        )
        for number in range(1, tries + 1)
        for place in ("open", "close")
    ]
