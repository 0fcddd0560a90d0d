"""What the gRPC listener reads and sends at most."""

from __future__ import annotations

import pytest

from brokers.config import Limits
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.answers import ITEMS_MAX, to_send
from brokers.rpc.peer import FRAME_BYTES_MAX
from brokers.rpc.server import _options
from brokers.wire.batch import encode_batch

MIB = 1024 * 1024


def bounds(limits: Limits) -> tuple[int, int]:
    """(read, sent)."""
    options = dict(_options(limits))
    return options["grpc.max_receive_message_length"], options["grpc.max_send_message_length"]


def test_no_more_is_read_than_could_be_stored_or_is_allowed() -> None:
    assert bounds(Limits())[0] == (16 + 8) * MIB
    assert bounds(Limits(message_bytes_max=90 * MIB))[0] == (90 + 8) * MIB
    assert bounds(Limits(request_bytes_max=MIB))[0] == MIB
    assert bounds(Limits(message_bytes_max=10))[0] > FRAME_BYTES_MAX + 1024, "other brokers are heard"


def test_a_bound_on_requests_is_none_on_answers() -> None:
    assert bounds(Limits(request_bytes_max=MIB))[1] == (64 + 8) * MIB
    assert bounds(Limits(message_bytes_max=2**31 - 1, request_bytes_max=2**31 - 1)) == (2**31 - 1, 2**31 - 1)


@pytest.mark.parametrize("headers", [0, 1])
def test_a_request_that_may_be_stored_is_read_whatever_protobuf_adds_to_it(headers: int) -> None:
    one = pb.Record(
        offset=-1, timestamp_ms=2**62, key=b"", value=b"", headers=[pb.Header(key="k", value=b"v")] * headers
    )
    request = pb.ProduceRequest(topic="t", acks=-1, records=[one] * (ITEMS_MAX // (1 + headers)))
    stored = encode_batch(to_send(request.records, 0))
    assert request.ByteSize() - len(stored) < bounds(Limits())[0] - Limits().message_bytes_max
