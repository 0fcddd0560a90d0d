"""Real sockets at a real broker's gRPC port: there may be only so many, and those that are there go on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import grpc
import pytest

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import AdminStub
from tests.integration.processes.running import PATIENCE_S, PROC, RunningBroker, eventually

CONNECTIONS_MAX = 10
ATTEMPTS = 300
# What HTTP/2 begins with, and settings that change nothing.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    made = RunningBroker(tmp_path_factory.mktemp("connections"), limits={"rpc_connections_max": CONNECTIONS_MAX})
    made.start()
    yield made
    made.stop()


def open_sockets(broker: RunningBroker) -> int:
    assert broker.process is not None
    handles = (PROC / str(broker.process.pid) / "fd").iterdir()
    return sum(str(handle.readlink()).startswith("socket:") for handle in handles)


def idle_client(broker: RunningBroker) -> socket.socket:
    """It has said what it speaks, and asks for nothing."""
    client = socket.create_connection(("127.0.0.1", broker.rpc_port))
    with suppress(OSError):  # closed already
        client.sendall(HELLO)
    return client


def ended(client: socket.socket) -> bool:
    """Whether the broker has closed it by now."""
    client.setblocking(False)
    try:
        while data := client.recv(65536):
            assert data
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def test_idle_connections_take_no_more_descriptors_than_they_may_and_who_was_there_goes_on(
    broker: RunningBroker,
) -> None:
    with ExitStack() as stack:
        admin = broker.admin_stub()
        request = pb.DescribeClusterRequest()
        assert admin.DescribeCluster(request, timeout=PATIENCE_S).me == 1
        before = open_sockets(broker)
        idle = [stack.enter_context(idle_client(broker)) for _ in range(ATTEMPTS)]
        eventually(lambda: sum(map(ended, idle)) >= ATTEMPTS - CONNECTIONS_MAX, "what is beyond the bound is closed")
        assert not all(map(ended, idle)), "those within the bound stay"
        assert open_sockets(broker) - before <= CONNECTIONS_MAX
        assert admin.DescribeCluster(request, timeout=PATIENCE_S).me == 1
    with grpc.insecure_channel(f"127.0.0.1:{broker.rpc_port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
        grpc.channel_ready_future(channel).result(PATIENCE_S)


def test_channels_beyond_the_bound_are_refused(broker: RunningBroker) -> None:
    """Each with a connection of its own, as different processes have."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    with ExitStack() as stack:
        channels = [
            stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{broker.rpc_port}", options))
            for _ in range(2 * CONNECTIONS_MAX)
        ]
        before = open_sockets(broker)
        for channel in channels[:CONNECTIONS_MAX]:
            grpc.channel_ready_future(channel).result(PATIENCE_S)
        for channel in channels[CONNECTIONS_MAX:]:
            with pytest.raises(grpc.RpcError) as refused:
                asked(channel)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert open_sockets(broker) - before <= CONNECTIONS_MAX
        assert all(asked(channel).me == 1 for channel in channels[:CONNECTIONS_MAX])


def asked(channel: grpc.Channel) -> pb.DescribeClusterResponse:
    return AdminStub(channel).DescribeCluster(pb.DescribeClusterRequest(), timeout=PATIENCE_S)
