"""`python -m tests.bench`: how fast the data plane is, and beside a peer's in the same run (docs/bench.md)."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import confluent_kafka

from tests.bench import cells, table
from tests.bench.run import Bench
from tests.bench.target import Target, peer
from tests.bench.trial import Clients
from workloads.errors import BrokerlabError
from workloads.run.manifest import commit, machine, now
from workloads.spec.settings import Architecture, ClusterSettings
from workloads.systems.api import SystemSetup
from workloads.systems.brokerlab import Brokerlab

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.run import Record

RESULTS: Final = Path("results")
BROKERS: Final = 3
SETTINGS: Final = ClusterSettings(
    brokers=BROKERS, partitions=3, replication_factor=1, acks=1, fsync="never", fsync_interval_ms=None
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure the data plane.")
    parser.add_argument("--peer", metavar="HOST:PORT[,...]", help="a Kafka cluster on this machine, measured in turns")
    parser.add_argument("--cells", nargs="+", default=[], metavar="CELL", help=" ".join(c.name for c in cells.CELLS))
    parser.add_argument("--repetitions", type=int, default=3, metavar="R", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S", help="each window at least; default: 1")
    parser.add_argument("--warm-up-s", type=float, default=20.0, metavar="S", help="of each target; default: 20")
    options = parser.parse_args()
    try:
        whole = asyncio.run(_bench(options, cells.chosen(options.cells)))
    except BrokerlabError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except asyncio.CancelledError:
        print("bench: told to end", file=sys.stderr)
        return 128 + signal.SIGTERM
    return 0 if whole else 1


async def _bench(options: argparse.Namespace, which: Sequence[cells.Cell]) -> bool:
    """Whether every trial gave a result. However it ends, what was measured is written and what was started ended."""
    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    about = _about(options)
    async with AsyncExitStack() as stack:
        work = Path(stack.enter_context(TemporaryDirectory(prefix="brokerlab-bench-")))
        targets = [await _ours(stack, work)]
        if options.peer:
            targets.append(peer(options.peer, cells.REQUEST_BYTES_MAX))
        who = Clients(work / "logs")
        stack.push_async_callback(who.stop)
        await who.start()
        bench = Bench(targets, who, options.seconds)
        await bench.warm_up(options.warm_up_s)
        for target in targets:
            target.reset_memory()
        try:
            await bench.run(which, options.repetitions)
        finally:
            about |= {"load_after": os.getloadavg()[0], "failed": bench.failed}
            about["memory_bytes_max"] = {target.name: target.memory_bytes_max() for target in targets}
            if bench.records:
                _write(about, bench.records)
    return not bench.failed


def _about(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "started": now(),
        "commit": commit(),
        "versions": {
            "Python": platform.python_version(),
            "librdkafka": confluent_kafka.libversion()[0],
            **{package: version(package) for package in ("brokerlab", "confluent-kafka", "uvloop")},
        },
        "machine": machine(),
        "seconds": options.seconds,
        "repetitions": options.repetitions,
    }


async def _ours(stack: AsyncExitStack, work: Path) -> Target:
    cluster = Brokerlab(SystemSetup(Architecture("static", "static"), SETTINGS, work / "brokers", work / "logs"))
    stack.push_async_callback(cluster.stop)
    before = monotonic()
    await cluster.start()
    print(f"{BROKERS} brokers of ours ready after {monotonic() - before:.2f} s", flush=True)
    pids = [process.pid for _, process in cluster.nodes.processes.values()]
    return Target(table.OURS, cluster.bootstrap("kafka"), pids, {}, cluster.admin)


def _write(about: dict[str, Any], records: Sequence[Record]) -> None:
    folder = _next_folder()
    text = _header(about) + table.markdown(table.rows(records))
    (folder / "bench.md").write_text(text)
    (folder / "bench.csv").write_text(table.as_csv(records))
    found = {**about, "records": [asdict(record) for record in records]}
    (folder / "bench.json").write_text(json.dumps(found, indent=1))
    print(f"\n{text}\nwritten to {folder}")


def _header(about: dict[str, Any]) -> str:
    machine, versions = about["machine"], about["versions"]
    memory = "; ".join(
        f"{name} {' + '.join(f'{size / 1e6:.0f}' for size in sizes)} MB"
        for name, sizes in about["memory_bytes_max"].items()
    )
    return (
        f"{machine['cores']} cores of {machine['processor']}, load {machine['load_at_start']:.1f} before and "
        f"{about['load_after']:.1f} after; Python {versions['Python']}, librdkafka {versions['librdkafka']}, uvloop "
        f"{versions['uvloop']}; {about['repetitions']} repetitions, windows of {about['seconds']:g} s or "
        f"more; highest resident memory of the brokers: {memory}.\n\n"
        + "".join(f"- failed: {failure}\n" for failure in about["failed"])
        + ("\n" if about["failed"] else "")
    )


def _next_folder() -> Path:
    RESULTS.mkdir(exist_ok=True)
    numbers = [int(path.name.removeprefix("bench-")) for path in RESULTS.glob("bench-*[0-9]")]
    folder = RESULTS / f"bench-{max(numbers, default=0) + 1}"
    folder.mkdir()
    return folder


if __name__ == "__main__":
    sys.exit(main())
