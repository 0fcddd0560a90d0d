"""Records of trials for tests: windows and request rows with known rates."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from workloads.measure.machine import Load
from workloads.results import request_schema
from workloads.spec.plan import Trial
from workloads.trial.record import VALID, Place, TrialRecord, Window
from workloads.trial.trial import WINDOWS

SENDS: Final = {"production": ("producer",), "consumption": ("consumer",), "both": ("producer", "consumer")}
SECOND_NS: Final = 1_000_000_000


def load(foreign_cores: float = 0.0, cores: int = 2) -> Load:
    return Load(wall_s=1.0, cores=cores, busy_cores=1.5, stolen_cores=0.0, foreign_cores=foreign_cores)


def measured(trial: Trial, rounds: int = 1, **rates: float) -> TrialRecord:
    """A valid trial whose whole windows have these messages/s, by role; each takes a second."""
    record = TrialRecord(trial, verdict=VALID)
    rows: list[dict[str, Any]] = []
    for window in WINDOWS[trial.cell.mode]:
        for turn in range(1, rounds + 1):
            number = len(record.windows) + 1
            record.windows.append(Window(Place(number, window, turn), None, None, load()))
            record.windows_s += 1.0
            for role in SENDS[window]:
                rows.append(_row(trial, role, number, rates[role]))
                record.rates.setdefault(role, []).append(rates[role])
    record.requests = pa.Table.from_pylist(rows, schema=request_schema())
    return record


def _row(trial: Trial, role: str, number: int, rate: float) -> dict[str, Any]:
    """All messages of a window: a million, so that any rate is exact enough."""
    sent_ns, messages = 10_000 * number * SECOND_NS, 1_000_000
    return {
        "trial_id": trial.id, "role": role, "client": 0, "window_number": number, "partition": -1, "requests": 1,
        "messages": messages, "bytes": messages * trial.cell.message_size, "sent_ns": sent_ns,
        "done_ns": sent_ns + round(messages / rate * SECOND_NS), "status": "ok", "latency_index": [],
        "latency_count": [],
    }  # fmt: skip
