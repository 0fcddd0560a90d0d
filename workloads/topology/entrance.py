"""The runner's way into a topology's namespaces: `python -m workloads.topology.entrance NETWORK [USER]`.

The runner stays in the machine's own network, whose names and routes must not change because an experiment runs. This
process listens there, on the loopback interface, and from then on is in the runner's place among the others, where it
connects to whom it is asked for by HTTP's CONNECT (RFC 9110, section 9.3.6), which gRPC speaks. Nothing that is timed
goes through it.

It says {"port": 40001} when it serves, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import suppress
from typing import Final

from workloads.topology import kernel

HEAD_BYTES_MAX: Final = 16_384
CHUNK_BYTES: Final = 65_536
_CONNECTED: Final = b"HTTP/1.1 200 Connected\r\n\r\n"
_REFUSED: Final = b"HTTP/1.1 502 Bad Gateway\r\n\r\n"


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one visitor: connect to whom it names, and carry bytes both ways until either end is done."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        host, _, port = head.split(b" ", 2)[1].decode().rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError, IndexError):
        with suppress(OSError):
            writer.write(_REFUSED)
            await writer.drain()
        writer.close()
        return
    writer.write(_CONNECTED)
    await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def serve(listener: socket.socket) -> None:
    server = await asyncio.start_server(pass_on, sock=listener, limit=HEAD_BYTES_MAX)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # visitors who are still there are of a cluster that is gone


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    for namespace in [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in reversed(sys.argv[1:])]:
        kernel.enter(namespace)  # the user's first: it is what allows to enter the other
    asyncio.run(serve(listener))


if __name__ == "__main__":
    main()
