"""Where a broker's time goes in a request, by part of the program.

`python -m tests.benchmarks.profiles` runs a broker of each architecture under Python's profiler, once with few requests
and once with many; the difference, for a request, is printed by part. The profiler makes calls dearer, so what counts
is the share of a part. kazoo's own thread is not in it, nor are
the event loop and its sockets: there the broker also waits.
"""

from __future__ import annotations

import argparse
import pstats
import signal
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.paths import ARCHITECTURES, JOBS, cost_us, made, started
from tests.contract.servers import Server

CASES: Final = (
    ("zookeeper", "produce 32 B x 1"),
    ("zookeeper", "commit"),
    ("dsbs", "commit"),
    ("static-journal", "commit"),
)
PARTS: Final = {
    "/kazoo/": "kazoo",
    "/coordinators/zookeeper/": "coordinators/zookeeper",
    "/coordinators/dsbs/": "coordinators/dsbs",
    "/coordinators/": "coordinators, the rest",
    "/brokers/journal": "brokers/journal",
    "/brokers/listeners/": "brokers/listeners",
    "/brokers/wire/": "brokers/wire",
    "/brokers/": "brokers, the rest",
}
LOOP: Final = "event loop, sockets, Python"
FEW, MANY = 500, 4_500
IN_FLIGHT: Final = 5
Function = tuple[str, int, str]


def part_of(function: Function) -> str:
    return next((part for piece, part in PARTS.items() if piece in function[0]), LOOP)


def parts(profile: Path) -> Counter[str]:
    """Seconds by part; what is built in counts for those who call it."""
    seconds: Counter[str] = Counter()
    functions: dict[Function, Any] = vars(pstats.Stats(str(profile)))["stats"]
    for function, (_, _, own_s, _, callers) in functions.items():
        if function[0] != "~":
            seconds[part_of(function)] += own_s
            continue
        for caller, (_, _, of_caller_s, _) in callers.items():
            seconds[part_of(caller)] += of_caller_s
    return seconds


def profiled(options: dict[str, Any], job: str, requests: int) -> Counter[str]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = folder / "profile"
        if options["name"] == "zookeeper":
            server = Server()
            stack.callback(server.close)
            options = {**options, "connect": server.address}
        broker = made(folder / "broker", options)
        running = started(stack, broker, ("cProfile", "-o", str(found), "-m", "brokers"))
        cost_us(running, JOBS[job], IN_FLIGHT, requests)
        broker.end(signal.SIGTERM)
        return parts(found)


def lines() -> list[str]:
    said = [f"| {' | '.join(('part', *(f'{name}: {job}' for name, job in CASES)))} |", f"|---|{'--:|' * len(CASES)}"]
    columns = []
    for name, job in CASES:
        few, many = (profiled(ARCHITECTURES[name], job, requests) for requests in (FEW, MANY))
        columns.append({part: (many[part] - few[part]) * 1e6 / (MANY - FEW) for part in many})
    for part in dict.fromkeys(PARTS.values()):
        costs = [f"{column.get(part, 0):.1f} us" for column in columns]
        said += [f"| {part} | {' | '.join(costs)} |"]
    return said


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("\n".join(lines()))


if __name__ == "__main__":
    main()
