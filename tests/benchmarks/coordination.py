"""`python -m tests.benchmarks.coordination`: how long until all brokers agree after a change, and what that costs.

Three real brokers of each architecture in turn. A change is a topic that is created, a broker that is killed, or one
that is started again; it is agreed on when every live broker shows it to those who ask. Coordination is counted by the
brokers themselves (`Admin.Statistics`), heartbeats left out: a request to ZooKeeper counts as two messages, itself and
its answer (the notifications of watches are not counted there), a message between brokers as one. The greetings of a
DSBS broker that joins are heartbeats.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import json
import os
import platform
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from tests.benchmarks.agreement import BROKERS, PARTITIONS, Brokers, NeverAgreed, Seen
from workloads.errors import BrokerlabError
from workloads.processes.ports import free_ports
from workloads.run.manifest import commit, machine, now
from workloads.services.zookeeper import ZooKeeperServer, jar_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.agreement import Spent

RESULTS: Final = Path("results")
ARCHITECTURES: Final[dict[str, dict[str, Any]]] = {
    "zookeeper": {"name": "zookeeper", "metadata": "lookup", "offsets": "zookeeper_each"},
    "zookeeper-watch": {
        "name": "zookeeper",
        "metadata": "watch",
        "offsets": "zookeeper_interval",
        "offsets_interval_ms": 1000,
    },
    "dsbs": {"name": "dsbs"},
    "static": {"name": "static"},
}
VICTIM: Final = BROKERS  # neither the first, which is the controller, nor the one that is asked to create
CREATED, DIED, JOINED = "topic created", "broker died", "broker joined"


@dataclass(frozen=True, slots=True)
class Record:
    """One change. `agreed_ms` is None where the architecture never comes to agree on it."""

    architecture: str
    change: str
    repetition: int
    agreed_ms: float | None
    messages: int
    bytes: int


class Bench:
    """All changes to the brokers of one architecture."""

    def __init__(self, architecture: str, brokers: Brokers) -> None:
        self._architecture = architecture
        self._brokers = brokers
        self.records: list[Record] = []

    async def run(self, repetitions: int) -> None:
        for repetition in range(repetitions):
            await self._create(f"topic-{repetition}", repetition)
        if self._architecture == "static":
            self.records += [Record("static", change, 0, None, 0, 0) for change in (DIED, JOINED)]
            return
        for repetition in range(repetitions):
            await self._kill(repetition)
            await self._join(repetition)

    async def _create(self, topic: str, repetition: int) -> None:
        before = await self._brokers.settled()
        begin = perf_counter()
        await self._brokers.create(topic)
        agreed = await self._brokers.agreed_on(lambda seen: topic in seen.leaders)
        await self._note(CREATED, repetition, agreed - begin, before)

    async def _kill(self, repetition: int) -> None:
        await self._brokers.create(f"led-{repetition}")  # nobody inherits: what is agreed on is that nobody leads it
        await self._brokers.agreed_on(lambda seen: VICTIM in seen.leaders.get(f"led-{repetition}", ()))
        before = await self._brokers.settled()
        begin = perf_counter()
        await self._brokers.kill(VICTIM)
        agreed = await self._brokers.agreed_on(_is_dead)
        await self._note(DIED, repetition, agreed - begin, {n: at for n, at in before.items() if n != VICTIM})

    async def _join(self, repetition: int) -> None:
        before = await self._brokers.settled()
        begin = await self._brokers.start(VICTIM)
        agreed = await self._brokers.agreed_on(lambda seen: len(seen.live) == BROKERS and bool(seen.leaders))
        await self._note(JOINED, repetition, agreed - begin, before)

    async def _note(self, change: str, repetition: int, seconds: float, before: dict[int, Spent]) -> None:
        after = await self._brokers.settled()
        spent = [count.since(before.get(number)) for number, count in after.items()]
        each = 1 if self._architecture == "dsbs" else 2  # a question has an answer
        messages = each * sum(count.requests for count in spent)
        record = Record(
            self._architecture, change, repetition, 1000 * seconds, messages, sum(count.bytes for count in spent)
        )
        self.records.append(record)
        print(f"{record.architecture:15} {change:13} {record.agreed_ms:9,.1f} ms {messages:5,} messages", flush=True)


def _is_dead(seen: Seen) -> bool:
    return VICTIM not in seen.live and all(VICTIM not in leaders for leaders in seen.leaders.values())


# --- the whole ---------------------------------------------------------------------------------------------


async def bench(chosen: Sequence[str], repetitions: int) -> list[Record]:
    """However it ends, what was started is ended; SIGTERM cancels it."""
    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    records: list[Record] = []
    for architecture in chosen:
        async with AsyncExitStack() as stack:
            work = Path(stack.enter_context(TemporaryDirectory(prefix="brokerlab-coordination-")))
            options = dict(ARCHITECTURES[architecture])
            if options["name"] == "zookeeper":
                (port,) = free_ports(1)
                server = ZooKeeperServer(work / "zookeeper", work / "zookeeper.log", port)
                stack.push_async_callback(server.stop)
                await server.start()
                options["connect"] = server.address
            brokers = Brokers(work, options)
            stack.push_async_callback(brokers.stop)
            await brokers.start_all()
            run = Bench(architecture, brokers)
            await run.run(repetitions)
            records += run.records
    return records


def markdown(records: Sequence[Record]) -> str:
    """A row for each architecture and change, in the order of the records."""
    head = ["architecture", "change", "changes", "median", "5 %", "95 %", "greatest", "messages", "bytes"]
    lines = [head, ["---", "---", *["---:"] * (len(head) - 2)]]
    kinds = dict.fromkeys((record.architecture, record.change) for record in records)
    lines += [[*kind, *_shown([r for r in records if (r.architecture, r.change) == kind])] for kind in kinds]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(found: Sequence[Record]) -> list[str]:
    times = sorted(record.agreed_ms for record in found if record.agreed_ms is not None)
    if not times:
        return ["", "never", "", "", "", "0", "0"]
    low, *_, high = quantiles(times, n=20, method="inclusive") if len(times) > 1 else [times[0], times[0]]
    costs = [median(record.messages for record in found), median(record.bytes for record in found)]
    shown = [f"{time:,.0f} ms" if time >= 100 else f"{time:,.1f} ms" for time in (median(times), low, high, times[-1])]
    return [str(len(times)), *shown, *(f"{cost:,.0f}" for cost in costs)]


def as_csv(records: Sequence[Record]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(Record)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(record) for record in records)
    return out.getvalue()


def write(about: dict[str, Any], records: Sequence[Record]) -> Path:
    """A folder of its own for each run, with the table, the records, and what they come from."""
    RESULTS.mkdir(exist_ok=True)
    numbers = [int(path.name.rpartition("-")[2]) for path in RESULTS.glob("coordination-*[0-9]")]
    folder = RESULTS / f"coordination-{max(numbers, default=0) + 1}"
    folder.mkdir()
    (folder / "coordination.md").write_text(header(about) + markdown(records))
    (folder / "coordination.csv").write_text(as_csv(records))
    (folder / "coordination.json").write_text(
        json.dumps({**about, "records": [asdict(record) for record in records]}, indent=1)
    )
    return folder


def header(about: dict[str, Any]) -> str:
    where, found = about["machine"], about["versions"]
    return (
        f"{BROKERS} brokers on {where['cores']} cores of {where['processor']}, load {where['load_at_start']:.1f} "
        f"before and {about['load_after']:.1f} after; Python {found['Python']}, ZooKeeper {found['ZooKeeper']}, kazoo "
        f"{found['kazoo']}, grpcio {found['grpcio']}. Topics of {PARTITIONS} partitions, on 2 brokers each. A broker's "
        "joining is timed from when its gRPC port is open: before that Python starts, and it joins after it.\n\n"
    )


def main() -> int:
    about_it = __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.coordination", description=about_it)
    parser.add_argument("--changes", type=int, default=10, metavar="N", help="of each kind; default: %(default)s")
    parser.add_argument("--architectures", nargs="+", choices=ARCHITECTURES, default=list(ARCHITECTURES))
    options = parser.parse_args()
    versions = {"Python": platform.python_version(), "ZooKeeper": jar_version()}
    versions |= {package: version(package) for package in ("brokerlab", "kazoo", "grpcio", "uvloop")}
    about: dict[str, Any] = {"started": now(), "commit": commit(), "versions": versions, "machine": machine()}
    try:
        records = asyncio.run(bench(options.architectures, options.changes))
    except (BrokerlabError, NeverAgreed) as error:
        print(f"bench-coordination: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench-coordination: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except asyncio.CancelledError:
        print("bench-coordination: told to end", file=sys.stderr)
        return 128 + signal.SIGTERM
    about["load_after"] = os.getloadavg()[0]
    folder = write(about, records)
    print(f"\n{(folder / 'coordination.md').read_text()}\nwritten to {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
