"""`python -m brokers CONFIG`: one broker, until SIGTERM or SIGINT.

It says one line of JSON on stdout when it serves. It ends with 0 after a signal, 2 where the config is refused, its
host is not this machine's or its folder another broker's or an earlier version's, 98 where a port is in use, 1 where
the disk or the coordination service fails it.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from brokers.addresses import HostUnusable, PortInUse
from brokers.broker import BrokerProcess
from brokers.config import ConfigError, load
from brokers.folder import FolderInUse, FolderOfAnother, FolderOfEarlierVersion
from brokers.log.errors import LogError
from coordinators.errors import CoordinationError, InvalidRequest, JournalFailed

if TYPE_CHECKING:
    from brokers.config import BrokerConfig

EXIT_CONFIG_REFUSED: Final = 2
EXIT_PORT_IN_USE: Final = 98
EXIT_FAILED: Final = 1
# glibc's number for "blocks as large as this are given back as soon as they are free", and where ours begin: by itself
# it raises that bound to 32 MiB, and then keeps what large requests once needed.
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK_BYTES: Final = 1024 * 1024
# The requests of one read are more objects than the 700 after which Python looks for garbage, and none of them is any:
# they live until the read is answered, and looking them through was a tenth of what one-message requests cost.
GARBAGE_AFTER: Final = 20_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m brokers", description="Run one broker until it is told to stop.")
    parser.add_argument("config", type=Path, help="its config file, JSON (docs/broker.md)")
    options = parser.parse_args()
    _allow_open_files()
    _give_memory_back()
    gc.set_threshold(GARBAGE_AFTER, 20, 20)
    try:
        import uvloop

        uvloop.run(serve(load(options.config)))
    except (ConfigError, InvalidRequest, HostUnusable, FolderInUse, FolderOfAnother, FolderOfEarlierVersion) as error:
        return _said(error, EXIT_CONFIG_REFUSED)
    except PortInUse as error:
        return _said(error, EXIT_PORT_IN_USE)
    except (CoordinationError, LogError, JournalFailed, OSError) as error:
        return _said(error, EXIT_FAILED)
    return 0


def _allow_open_files() -> None:
    """As many as the machine lets a process have: each partition keeps a file open, each client a socket."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _give_memory_back() -> None:
    """Nothing to be done where the C library is another one."""
    if hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)


def _said(error: Exception, code: int) -> int:
    print(f"broker: {error}", file=sys.stderr)
    return code


async def serve(config: BrokerConfig) -> None:
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    broker = BrokerProcess(config)
    await broker.start()
    try:
        print(json.dumps({"ready": config.me.id, "pid": os.getpid()}), flush=True)
        await told_to_stop.wait()
    finally:
        await broker.stop()


if __name__ == "__main__":
    sys.exit(main())
