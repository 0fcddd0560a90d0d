"""The files that client processes leave for the runner at the end of each job: their requests, and what they saw.

Files of one trial in the run's work folder; the runner joins them into raw records and hands the ids to the audit.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from workloads.clients.drivers.api import COUNTER_BITS, OK
from workloads.errors import BrokerlabError
from workloads.results import request_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from workloads.clients.drivers.api import Consumed, ConsumeJob, Produced, ProduceJob, RequestRow

Ids = npt.NDArray[np.uint64]
Pairs = npt.NDArray[np.int64]  # two columns
Triples = npt.NDArray[np.int64]  # three columns
_BIG_ENDIAN: Final = np.dtype(">u8")
_SENDS: Final = "sends"
_RECEIPTS: Final = "receipts-"


class NotWritten(BrokerlabError):
    """The disk refused."""


def summary_of_produced(produced: Produced) -> dict[str, Any]:
    """The part of a producer's window that the runner needs at once."""
    return {
        "sent": produced.sent,
        "acknowledged": sum(len(counters) for blocks in produced.acknowledged.values() for counters in blocks),
        "failed": produced.failed,
        "window_s": _window_s(produced.rows),
    }


def summary_of_consumed(seen: Consumed) -> dict[str, Any]:
    """The part of a consumer's window that the runner needs at once."""
    return {
        "consumed": sum(row.messages for row in seen.rows),
        "wrong_payloads": seen.wrong_payloads,
        "commits": seen.commits,
        "dry": seen.dry,
        "window_s": _window_s(seen.rows),
    }


def write_produced(job: ProduceJob, produced: Produced) -> None:
    """Write a producer's part of all windows."""
    base = np.uint64(job.producer << COUNTER_BITS)
    ids = {partition: _counters(blocks) + base for partition, blocks in produced.acknowledged.items()}
    times = {_SENDS: _columns(sorted(produced.sends), 2)}
    _write(Path(job.out), "producer", job.producer, produced.rows, ids, times)


def write_consumed(job: ConsumeJob, seen: Consumed) -> None:
    """Write a consumer's part of all windows."""
    ids = {partition: np.frombuffer(bytes(raw), _BIG_ENDIAN).astype(np.uint64) for partition, raw in seen.ids.items()}
    times = {f"{_RECEIPTS}{partition}": _columns(receipts, 3) for partition, receipts in seen.receipts.items()}
    _write(Path(job.out), "consumer", job.consumer, seen.rows, ids, times)


def _counters(blocks: Sequence[range]) -> Ids:
    """All counters of the blocks, in their order."""
    firsts = np.array([block.start for block in blocks], np.uint64)
    lengths = np.array([len(block) for block in blocks], np.int64)
    begins = np.cumsum(lengths) - lengths  # where each block begins in the whole
    return np.repeat(firsts - begins.astype(np.uint64), lengths) + np.arange(lengths.sum(), dtype=np.uint64)


def _columns(rows: Sequence[tuple[int, ...]], columns: int) -> npt.NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(-1, columns)


def _window_s(rows: Sequence[RequestRow]) -> float:
    """First send to last completion that carried a message; 0 where none did."""
    carried = [row.done_ns for row in rows if row.messages and row.status == OK]
    return (max(carried) - min(row.sent_ns for row in rows)) / 1e9 if carried else 0.0


def _write(
    out: Path,
    role: str,
    client: int,
    rows: Sequence[RequestRow],
    ids: Mapping[int, Ids],
    times: Mapping[str, npt.NDArray[np.int64]],
) -> None:
    import pyarrow as pa
    from pyarrow import feather

    columns: dict[str, Any] = {
        "role": pa.array([role] * len(rows), pa.string()),
        "client": pa.array([client] * len(rows), pa.int32()),
        "window_number": [row.window_number for row in rows],
        "partition": [row.partition for row in rows],
        "requests": [row.requests for row in rows],
        "messages": [row.messages for row in rows],
        "bytes": [row.bytes for row in rows],
        "sent_ns": [row.sent_ns for row in rows],
        "done_ns": [row.done_ns for row in rows],
        "status": pa.array([row.status for row in rows], pa.string()),
        "latency_index": [None if row.latency is None else sorted(row.latency) for row in rows],
        "latency_count": [
            None if row.latency is None else [row.latency[i] for i in sorted(row.latency)] for row in rows
        ],
    }
    schema = request_schema().remove(0)  # the runner knows the trial's id
    blocks: dict[str, Any] = {**{str(partition): block for partition, block in ids.items()}, **times}
    try:
        feather.write_feather(pa.table(columns, schema=schema), str(out.with_suffix(".arrow")))
        np.savez(out.with_suffix(".npz"), **blocks)
    except OSError as error:
        raise NotWritten(f"what it saw cannot be written to {out.parent}: {error.strerror or error}") from error


def read_ids(out: Path) -> dict[int, Ids]:
    with np.load(out.with_suffix(".npz")) as blocks:
        return {int(partition): blocks[partition] for partition in blocks.files if partition.isdecimal()}


def read_sends(out: Path) -> Pairs:
    """First counter of what a producer sent together, and when, in the order of the counters."""
    with np.load(out.with_suffix(".npz")) as blocks:
        found: Pairs = blocks[_SENDS]
        return found


def read_receipts(out: Path) -> dict[int, Triples]:
    """Per partition, how many messages came to a consumer together, when, and in which window; empty where it noted
    none."""
    with np.load(out.with_suffix(".npz")) as blocks:
        names = [name for name in blocks.files if name.startswith(_RECEIPTS)]
        return {int(name.removeprefix(_RECEIPTS)): blocks[name] for name in names}


def read_requests(outs: Sequence[Path], trial_id: str) -> pa.Table:
    """The requests of all clients of a trial, in the schema of the raw records."""
    import pyarrow as pa
    from pyarrow import feather

    table = pa.concat_tables([feather.read_table(str(out.with_suffix(".arrow"))) for out in outs])
    return with_trial_id(table, trial_id).cast(request_schema())


def with_trial_id(requests: pa.Table, trial_id: str) -> pa.Table:
    """Requests as those of a trial, whether or not they named a trial before."""
    import pyarrow as pa

    others = requests.select([name for name in requests.column_names if name != "trial_id"])
    return others.add_column(0, "trial_id", pa.array([trial_id] * len(others), pa.string()))
