"""InitProducerId: the identity of an idempotent producer (KIP-98)."""

from __future__ import annotations

from dataclasses import dataclass

from brokers.wire.schema import Int16, Int32, Int64, NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest:
    transactional_id: NullableString
    transaction_timeout_ms: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16 = -1
