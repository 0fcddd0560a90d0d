"""Work that takes longer than others may wait: the event loop does it in slices, or a thread does it.

A batch's bytes and records bound what it unpacks to, and that is still a second of work. `Slices` serves one such batch
at a time, so that all together hold the memory of one, and the loop turns to everybody else in between. Both listeners
share it: a fetch through gRPC and a look for a timestamp on the Kafka wire take batches apart.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from brokers.wire.compression import Codec

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokers.wire.batch import BatchHeader

    Unpack = Callable[[memoryview, BatchHeader, int], bytes | memoryview]

# Records that are taken apart in a row, some microseconds each: others wait for some milliseconds, which a client does
# not notice.
SLICE_RECORDS: Final = 1000


class Slices(asyncio.Lock):
    """The lock to hold while a batch is unpacked and taken apart."""

    @staticmethod
    async def unpack(unpack: Unpack, batch: memoryview, header: BatchHeader, bytes_max: int) -> bytes | memoryview:
        """The result of `unpack`, by a thread where there is anything to unpack: the codecs let other threads run."""
        if header.codec == Codec.NONE:
            return unpack(batch, header, bytes_max)
        return await asyncio.get_running_loop().run_in_executor(None, unpack, batch, header, bytes_max)

    @staticmethod
    async def turn() -> None:
        """Let the others have theirs."""
        await asyncio.sleep(0)
