"""Jobs for tests, and a runner's words to those who do them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workloads.clients.drivers.api import ConsumeJob, ProduceJob


def produce_job(out: Path, **changes: Any) -> ProduceJob:
    return ProduceJob(**{
        "driver": "grpc", "bootstrap": ("127.0.0.1:1",), "topic": "t", "partitions": 3, "producer": 2,
        "message_size": 16, "batch_size": 2, "acks": 1, "in_flight": 5, "out": str(out), **changes,
    })  # fmt: skip


def consume_job(out: Path, **changes: Any) -> ConsumeJob:
    return ConsumeJob(**{
        "driver": "grpc", "bootstrap": ("127.0.0.1:1",), "topic": "t", "partitions": (0, 1), "consumer": 0,
        "group": "g", "message_size": 16, "batch_size": 2, "fetch": "batch", "commit": "every_batch",
        "commit_interval_ms": None, "in_flight": 5, "fetch_ahead": 20, "out": str(out), **changes,
    })  # fmt: skip


class Words:
    """All consumers have joined. The word to stop comes after so many questions for it, or never."""

    def __init__(self, targets: Mapping[int, int] | None = None, *, stop_after: int | None = None) -> None:
        self._targets = targets
        self._left = stop_after
        self.at_work = 0  # how often it was said

    def working(self) -> None:
        self.at_work += 1

    def stopped(self) -> bool:
        if self._left is None:
            return False
        self._left -= 1
        return self._left < 0

    def all_joined(self) -> bool:
        return True

    def targets(self) -> Mapping[int, int] | None:
        return self._targets
