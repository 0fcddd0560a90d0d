"""Jobs for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workloads.clients.drivers.api import ConsumeJob, ProduceJob


def produce_job(out: Path, **changes: Any) -> ProduceJob:
    return ProduceJob(**{
        "driver": "grpc", "bootstrap": ("127.0.0.1:1",), "topic": "t", "partitions": 3, "producer": 2, "messages": 10,
        "duration_s": None, "message_size": 16, "batch_size": 2, "acks": 1, "rate": None, "out": str(out), **changes,
    })  # fmt: skip


def consume_job(out: Path, **changes: Any) -> ConsumeJob:
    return ConsumeJob(**{
        "driver": "grpc", "bootstrap": ("127.0.0.1:1",), "topic": "t", "partitions": (0, 1), "consumer": 0,
        "group": "g", "message_size": 16, "batch_size": 2, "fetch": "batch", "commit": "every_batch",
        "commit_interval_ms": None, "duration_s": None, "out": str(out), **changes,
    })  # fmt: skip
