"""The tables of a broker, served over gRPC, and printed as JSON: `python -m brokers.rpc.tables HOST:PORT`."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import grpc.aio
from google.protobuf.json_format import MessageToDict

from brokers.rpc import peer_pb2 as pb
from brokers.rpc.answers import error_of
from brokers.rpc.peer_pb2_grpc import TablesServicer, TablesStub
from coordinators.errors import CoordinationError, Unsupported

if TYPE_CHECKING:
    from coordinators.dsbs.tables.table_dump import Tables

DEADLINE_S: Final = 5.0
EXIT_UNREACHABLE: Final = 1
EXIT_UNSUPPORTED: Final = 2


@runtime_checkable
class HoldsTables(Protocol):
    """The abilities of a coordinator that holds tables, beyond the contract."""

    def tables(self) -> Tables: ...


class TablesService(TablesServicer):
    def __init__(self, holder: object) -> None:
        """`holder` is the broker's coordinator, whatever the architecture."""
        self._holder = holder if isinstance(holder, HoldsTables) else None

    async def Show(  # noqa: N802 - the service's name
        self,
        request: pb.ShowTablesRequest,
        context: grpc.aio.ServicerContext[pb.ShowTablesRequest, pb.ShowTablesResponse],
    ) -> pb.ShowTablesResponse:
        try:
            if self._holder is None:
                raise Unsupported("this architecture keeps no tables in its brokers")
            return _answer(self._holder.tables())
        except CoordinationError as error:
            return pb.ShowTablesResponse(error=error_of(error))


def _answer(tables: Tables) -> pb.ShowTablesResponse:
    answer = pb.ShowTablesResponse(hash=tables.hash, refused=dict(tables.refused))
    for row in tables.brokers:
        answer.brokers.add(broker=row.broker, address=row.address, status=row.status, incarnation=row.incarnation)
    for line in tables.partitions:
        answer.partitions.add(
            topic=line.topic,
            partition=line.partition,
            broker=line.broker,
            epoch=line.epoch,
            replicas=line.replicas,
            in_sync=line.in_sync,
        )
    for place in tables.offsets:
        answer.offsets.add(consumer=place.consumer, topic=place.topic, partition=place.partition, offset=place.offset)
    return answer


async def fetch(address: str) -> pb.ShowTablesResponse:
    """Raises `grpc.aio.AioRpcError`."""
    async with grpc.aio.insecure_channel(address) as channel:
        return await TablesStub(channel).Show(pb.ShowTablesRequest(), timeout=DEADLINE_S)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m brokers.rpc.tables", description="Print a broker's tables.")
    parser.add_argument("address", help="host:port of its gRPC listener")
    address = parser.parse_args().address
    try:
        answer = asyncio.run(fetch(address))
    except grpc.aio.AioRpcError as error:
        print(f"no answer from {address}: {error.details()}", file=sys.stderr)
        return EXIT_UNREACHABLE
    if answer.HasField("error"):
        print(answer.error.message, file=sys.stderr)
        return EXIT_UNSUPPORTED
    print(
        json.dumps(MessageToDict(answer, always_print_fields_with_no_presence=True, preserving_proto_field_name=True))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
