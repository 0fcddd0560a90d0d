"""A broker's counters of its data plane. Plain integers, added to on the hot path and read by `Statistics`."""

from __future__ import annotations

from dataclasses import dataclass, field

from brokers.notices import Notices


@dataclass(slots=True)
class OperationCount:
    """Requests of one kind that carried messages."""

    requests: int = 0
    messages: int = 0
    bytes: int = 0


@dataclass(slots=True)
class KafkaCounts:
    """The Kafka listener's connections, and its requests by API; Produce is counted as an operation alone."""

    requests: dict[str, int] = field(default_factory=dict)
    connections: int = 0
    connections_made: int = 0
    connections_refused: int = 0
    connections_idle_closed: int = 0

    def add(self, api: str) -> None:
        self.requests[api] = self.requests.get(api, 0) + 1


@dataclass(slots=True)
class Metrics:
    produce: OperationCount = field(default_factory=OperationCount)
    fetch: OperationCount = field(default_factory=OperationCount)
    kafka: KafkaCounts = field(default_factory=KafkaCounts)
    notices: Notices = field(default_factory=Notices)
    refused: dict[str, int] = field(default_factory=dict)  # reason -> requests that were malformed or not allowed

    def refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1
