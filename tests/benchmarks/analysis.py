"""How long the analysis takes, and how much memory, by number of request rows: `python -m tests.benchmarks.analysis`.

Rows are generated in parts, one request a row, as the gRPC driver writes them; two sizes are analysed one after the
other, each by a process of its own, and the ratio of their times is printed: linear is the ratio of their rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests import made_records
from tests.made_records import MadeTrial
from workloads import results
from workloads.processes.java import with_java

_ARCHITECTURES = ("zookeeper", "dsbs")
_TRIAL_ROWS_MAX = 1_000_000
_LOOK_EVERY_S = 0.5
_MEGABYTE = 1 << 20


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m tests.benchmarks.analysis", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000, 100_000_000], help="sizes, smallest first")
    parser.add_argument("--memory-mb", type=int, default=1024, help="Spark's heap (%(default)s)")
    parser.add_argument(
        "--folder", type=Path, help="where the rows are generated, about 9 bytes each (a temporary one)"
    )
    options = parser.parse_args(arguments)
    times = []
    print(f"{'rows':>12} {'bytes':>14} {'made in':>9} {'analysed in':>12} {'processor':>11} {'peak memory':>12}")
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="brokerlab-bench-", dir=options.folder) as folder:
            times.append(measure(Path(folder) / "run", rows, options.memory_mb))
    for rows, (wall_s, cpu_s) in zip(options.rows[1:], times[1:], strict=True):
        ratios = wall_s / times[0][0], cpu_s / times[0][1]
        print(
            "{:.1f} times the rows: {:.1f} times the time, {:.1f} times the processor time".format(
                rows / options.rows[0], *ratios
            )
        )


def measure(folder: Path, rows: int, memory_mb: int) -> tuple[float, float]:
    """Generate so many rows, analyse them, print a line; return the analysis's seconds and processor seconds."""
    start = time.monotonic()
    generate(folder, rows)
    made_s = time.monotonic() - start
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = analyse(folder, memory_mb)
    took_s, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{rows:12,} {size:14,} {made_s:7.1f} s {took_s:10.1f} s {cpu_s:9.1f} s {peak / _MEGABYTE:8,.0f} MiB",
        flush=True,
    )
    return took_s, cpu_s


def generate(folder: Path, rows: int) -> None:
    """Raw records of two architectures' tries, a row for each request, half of them of consumers."""
    tries = -(-rows // (_TRIAL_ROWS_MAX * len(_ARCHITECTURES)))
    trials = [
        MadeTrial(name, try_=number, mode="streaming") for name in _ARCHITECTURES for number in range(1, tries + 1)
    ]
    into = results.ResultsFolder(folder)
    for seed, made in enumerate(trials):
        into.write_trial(*_trial(made, rows // len(trials), seed))


def _trial(made: MadeTrial, rows: int, seed: int) -> tuple[dict[str, object], pa.Table, list[dict[str, object]]]:
    row = made_records.trial_row(made)
    counts = dict.fromkeys(("sent", "acknowledged", "stored", "consumed"), rows // 2 * 20)
    parts = pa.concat_tables(_requests(made.trial_id, role, rows // 2, seed) for role in ("producer", "consumer"))
    # Its rows are single requests, so their latencies are told, too.
    return row | counts | {"driver": "grpc"}, parts, made_records.latency_rows(made)


def _requests(trial_id: str, role: str, rows: int, seed: int) -> pa.Table:
    """Requests of 20 messages, one after the other in 100,000 a second, with latencies about 1 ms."""
    generator = np.random.default_rng(seed)
    sent = made_records.START_NS + np.arange(rows, dtype=np.int64) * 10_000
    took = generator.gamma(4, 250_000, rows).astype(np.int64) + 1
    none = pa.array(np.zeros(rows + 1, np.int32))
    columns = {
        "trial_id": _constant(trial_id, rows),
        "role": _constant(role, rows),
        "client": np.zeros(rows, np.int32),
        "window_number": np.ones(rows, np.int32),
        "partition": (np.arange(rows) % 3).astype(np.int32),
        "requests": np.ones(rows, np.int32),
        "messages": np.full(rows, 20, np.int64),
        "bytes": np.full(rows, 640, np.int64),
        "sent_ns": sent,
        "done_ns": sent + took,
        "status": _constant("ok", rows),
        "latency_index": pa.ListArray.from_arrays(none, pa.array([], pa.int32())),
        "latency_count": pa.ListArray.from_arrays(none, pa.array([], pa.int64())),
    }
    return pa.table(columns, schema=results.request_schema())


def _constant(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text])).cast(pa.string())


def analyse(folder: Path, memory_mb: int) -> int:
    """Run the analysis; return the most memory, in bytes, that it and its Java held together."""
    command = [sys.executable, "-m", "analysis", str(folder), "--memory-mb", str(memory_mb)]
    peak = 0
    with subprocess.Popen(command, env=with_java(), stdout=subprocess.DEVNULL) as process:
        while True:
            peak = max(peak, sum(_resident_bytes(pid) for pid in (process.pid, *_children(process.pid))))
            try:
                code = process.wait(_LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                continue
            break
    if code:
        raise SystemExit(f"the analysis ended with {code}")
    return peak


def _children(pid: int) -> Iterator[int]:
    try:
        yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except FileNotFoundError:
        return


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError):
        return 0


if __name__ == "__main__":
    main()
