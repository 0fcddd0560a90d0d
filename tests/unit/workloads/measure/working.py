"""Processes that work when they are told to, for tests that read what processes used."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from workloads.processes.process import Process

# Works for a tenth of a second of processor time, writes it down, and says so; for each line that it is told.
WORKS = """
import os, sys, time
for line in sys.stdin:
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    print("worked", flush=True)
"""
WITHIN_S = 20.0


@asynccontextmanager
async def workers(folder: Path, *names: str) -> AsyncIterator[dict[str, tuple[str, Process]]]:
    found = {}
    try:
        async with asyncio.timeout(WITHIN_S):
            for name in names:
                command = [sys.executable, "-S", "-c", WORKS]
                process = await Process.start(name, command, folder / f"{name}.log", spoken_with=True)
                found[name] = ("broker", process)
                await work(process)  # it has started
            yield found
    finally:
        for _, process in found.values():
            await process.stop()


async def work(process: Process) -> None:
    await process.write_line(b"")
    assert await process.read_line() == b"worked\n"
