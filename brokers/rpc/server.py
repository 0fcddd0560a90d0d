"""The gRPC listener: one port, bounded, on the broker's event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import grpc.aio

from brokers.addresses import PortInUse
from brokers.rpc.brokerlab_pb2_grpc import add_AdminServicer_to_server, add_DataServicer_to_server
from brokers.rpc.peer import FRAME_BYTES_MAX
from brokers.rpc.peer_pb2_grpc import add_PeerServicer_to_server, add_TablesServicer_to_server
from brokers.rpc.unpacking import MESSAGE_BYTES_MAX, OVERHEAD_BYTES_MAX, answer_bytes_max

if TYPE_CHECKING:
    from brokers.config import Limits
    from brokers.rpc.admin import AdminService
    from brokers.rpc.data import DataService
    from brokers.rpc.peer import PeerService
    from brokers.rpc.tables import TablesService
    from coordinators.model import Broker

STOP_GRACE_S: Final = 1.0
STREAMS_PER_CONNECTION_MAX: Final = 1000
METADATA_BYTES_MAX: Final = 16 * 1024
# A connection on which nothing is called is closed after as long as one of the Kafka listener, and one whose client has
# not said that it speaks HTTP/2 much sooner; a client that comes back for another call connects again by itself.
IDLE_MS_MAX: Final = 600_000
HANDSHAKE_MS_MAX: Final = 10_000


class RpcServer:
    def __init__(
        self,
        me: Broker,
        limits: Limits,
        data: DataService,
        admin: AdminService,
        peer: PeerService,
        tables: TablesService,
    ) -> None:
        self._address = f"{me.host}:{me.rpc_port}"
        self._server = grpc.aio.server(options=_options(limits))
        add_DataServicer_to_server(data, self._server)
        add_AdminServicer_to_server(admin, self._server)
        add_PeerServicer_to_server(peer, self._server)
        add_TablesServicer_to_server(tables, self._server)

    async def start(self) -> None:
        """Listen. Raises `PortInUse`: the host was found to be this machine's (addresses.py)."""
        try:
            self._server.add_insecure_port(self._address)
        except RuntimeError as error:
            raise PortInUse(f"cannot listen on {self._address}: it is in use") from error
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(STOP_GRACE_S)


def _options(limits: Limits) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 0),  # two brokers on one port would share its clients without a word
        ("grpc.max_receive_message_length", min(limits.request_bytes_max, _useful_bytes_max(limits))),
        ("grpc.max_send_message_length", max(limits.request_bytes_max, answer_bytes_max(limits.message_bytes_max))),
        # A connection beyond the bound is accepted and closed at once, whatever it has sent.
        ("grpc.max_allowed_incoming_connections", limits.rpc_connections_max),
        ("grpc.max_connection_idle_ms", IDLE_MS_MAX),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS_MAX),
        ("grpc.max_concurrent_streams", STREAMS_PER_CONNECTION_MAX),
        ("grpc.max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_ping_strikes", 5),
    ]


def _useful_bytes_max(limits: Limits) -> int:
    """The largest message that is a batch which may be stored, or another broker's frame.

    More is refused before the library takes it apart: two bytes may be a record that takes ninety in memory.
    """
    return min(max(limits.message_bytes_max, FRAME_BYTES_MAX) + OVERHEAD_BYTES_MAX, MESSAGE_BYTES_MAX)
