"""Driver `grpc`: the broker's own data service, and what the runner uses of the same connections."""

from __future__ import annotations

from workloads.clients.drivers.grpc.cluster import CALL_WITHIN_S, Cluster, called, refuse
from workloads.clients.drivers.grpc.consumer import Consumer
from workloads.clients.drivers.grpc.producer import Producer

__all__ = ["CALL_WITHIN_S", "Cluster", "Consumer", "Producer", "called", "refuse"]
