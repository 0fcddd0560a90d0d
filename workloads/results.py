"""The output of a run: the schema of the raw records, and the only code that writes or names their files.

A results folder holds `manifest.json` and, for every finished trial, one Parquet file in each of `requests/`,
`latency/` and `trials/`, and in `history/` where its clients wrote one. The file in `trials/` is written last, so a
trial whose row exists is complete, and a run that was killed goes on from the rows that exist. Tables and figures are
computed from these files alone.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workloads.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

SCHEMA_VERSION = 3
_MANIFEST_KEYS = frozenset({"spec_hash", "profile", "started", "ended", "planned"})  # what is read back
TRIALS, REQUESTS, LATENCY = "trials", "requests", "latency"
HISTORY = "history"  # only of trials whose clients were told to write one
MANIFEST = "manifest.json"
# Names of architectures, experiments and profiles that the file of a run and its records may have. Names become
# part of ids, of file names and of addresses in the report.
_NAME_CHARACTERS_MAX = 40
NAME = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{_NAME_CHARACTERS_MAX - 1}}}", re.ASCII)
NAME_RULE = f"up to {_NAME_CHARACTERS_MAX} small letters, digits and hyphens, and starts with a letter or digit"
LOCK = ".lock"  # held by the run that writes here
_NAMES_SHOWN_MAX = 3

# A histogram bucket holds values whose first 11 bits agree, so a value is known to better than one part in 1,024:
# three digits. Indices are stable, so histograms of any two processes add up bucket by bucket.
_PRECISION_BITS = 10


def bucket_of(value_ns: int) -> int:
    """Index of the histogram bucket that holds `value_ns` (>= 0)."""
    shift = max(0, value_ns.bit_length() - _PRECISION_BITS - 1)
    return (shift << _PRECISION_BITS) + (value_ns >> shift)


def trial_schema() -> pa.Schema:
    """One row a trial: the cell, the architecture, what was counted, what it cost, and whether it may be believed."""
    import pyarrow as pa

    text, whole, real = pa.string(), pa.int64(), pa.float64()
    return pa.schema([
        ("schema_version", pa.int32()),
        ("spec_hash", text),
        ("trial_id", text),              # unique in the run, e.g. "message_size=8,batch_size=20,mode=split/dsbs/2"
        ("kind", text),                  # measured | calibration | warmup
        ("cell", text),                  # "message_size=8,batch_size=20,mode=split" and any other axis that is swept
        ("experiments", pa.list_(text)),  # the experiments that share the cell
        ("architecture", text),
        ("architecture_rank", pa.int32()),  # its place in experiments.yaml
        ("system", text),                # of workloads/systems; records of before have none, and are brokerlab's
        ("settings", text),              # the architecture's row and options: equal ones differ in name alone
        ("try", pa.int32()),             # counts from 1
        ("position", pa.int32()),        # place in the order in which the run went
        ("mode", text),                  # split | streaming
        ("message_size", whole),         # bytes
        ("batch_size", pa.int32()),      # messages a request, as asked for
        ("driver", text),
        ("brokers", pa.int32()),
        ("partitions", pa.int32()),
        ("replication_factor", pa.int32()),
        ("acks", pa.int32()),            # -1 is all
        ("fsync", text),
        ("producers", pa.int32()),
        ("consumers", pa.int32()),
        ("commit", text),
        ("fetch", text),
        ("in_flight", pa.int32()),       # requests under way for each connection to a broker
        ("fetch_ahead", pa.int32()),     # batches of a partition that a consumer fetches ahead
        ("rate", real),                  # messages/s; null is max
        ("load", real),                  # in mode load: the share of the sustained rate that `rate` is
        ("topology", text),              # loopback | namespaces
        ("rtt_ms", text),                # added round trips, as in the cell's id; 0 where there are none
        ("sent", whole),
        ("acknowledged", whole),
        ("stored", whole),
        ("consumed", whole),
        ("create_topic_s", real),
        ("connect_s", real),             # the slowest client
        ("join_s", real),                # the slowest consumer: from start to an assignment it can fetch from
        ("windows", pa.list_(windows_type())),
        ("verdict", text),               # valid | invalid (does not balance) | failed (did not finish)
        ("reason", text),                # empty when valid
        ("resources", pa.list_(resources_type())),
        ("coordination", pa.list_(coordination_type())),  # null where the system counts none
        ("broker_requests", pa.list_(broker_requests_type())),  # null where the system counts none
    ])  # fmt: skip


def windows_type() -> pa.StructType:
    """The timed windows of a trial, in their order, with what the machine did meanwhile.

    `opened_ns` and `closed_ns` are CLOCK_MONOTONIC; both are null of a window that is whole: from its first send to its
    last acknowledgement. Cores are processor time a second, between the start of the window's clients and their end.
    """
    import pyarrow as pa

    return pa.struct([
        ("number", pa.int32()),           # from 1; what was done outside of windows has number 0
        ("window", pa.string()),          # production | consumption | both (streaming, load)
        ("round", pa.int32()),            # from 1 in each block; architectures are paired by block and round
        ("attempt", pa.int32()),          # above 1 where the round was disturbed, and measured again
        ("place", pa.int32()),            # of the architecture in the order of its round, from 1
        ("opened_ns", pa.int64()),
        ("closed_ns", pa.int64()),
        ("wall_s", pa.float64()),         # between the two readings of the counters
        ("cores", pa.int32()),            # of the machine
        ("busy_cores", pa.float64()),     # of all of the machine's processes
        ("stolen_cores", pa.float64()),   # by other machines on the same hardware
        ("foreign_cores", pa.float64()),  # busy and stolen, without the processes of the run; null where not known
    ])  # fmt: skip


def resources_type() -> pa.StructType:
    """The resources that each process used in each window."""
    import pyarrow as pa

    return pa.struct([
        ("role", pa.string()),            # broker | coordinator | producer | consumer | network (what delays packets)
        ("node", pa.string()),            # "broker-1", "zookeeper", "producer-0"
        ("number", pa.int32()),           # the window's
        ("window", pa.string()),          # production | consumption | both (streaming)
        ("wall_s", pa.float64()),
        ("cpu_user_s", pa.float64()),
        ("cpu_system_s", pa.float64()),
        ("rss_max_bytes", pa.int64()),
        ("written_bytes", pa.int64()),    # to disk; what the page cache still holds is not in it
        ("received_bytes", pa.int64()),   # by network, as the process itself counted; null where it does not count
        ("sent_bytes", pa.int64()),
        ("gc_pause_s", pa.float64()),     # the world stopped for the JVM's collector; null where there is no JVM
        ("coordination_cpu_s", pa.float64()),  # of a broker's CPU, what the coordination client took
    ])  # fmt: skip


def coordination_type() -> pa.StructType:
    """The requests of each broker to its coordinator in each window."""
    import pyarrow as pa

    return pa.struct([
        ("node", pa.string()),       # the broker that counted
        ("number", pa.int32()),      # the window's
        ("window", pa.string()),     # production | consumption | both (streaming)
        ("operation", pa.string()),  # lookup | commit | watch | push | digest | heartbeat | ...
        ("count", pa.int64()),
        ("bytes", pa.int64()),
        ("wait_s", pa.float64()),    # time that requests waited for coordination
    ])  # fmt: skip


def broker_requests_type() -> pa.StructType:
    """The requests that each broker served in each window."""
    import pyarrow as pa

    return pa.struct([
        ("node", pa.string()),
        ("number", pa.int32()),      # the window's
        ("window", pa.string()),
        ("operation", pa.string()),  # produce | fetch
        ("requests", pa.int64()),    # those that carried messages
        ("messages", pa.int64()),
        ("bytes", pa.int64()),
    ])  # fmt: skip


def request_schema() -> pa.Schema:
    """One row a request, or (where the client library hides its requests) one row a slice of time.

    Times are CLOCK_MONOTONIC nanoseconds. A slice carries the first send and the last completion in it, so rates
    from slices are exact at the ends; its latencies are a histogram (`bucket_of`), empty in a row of one request.
    """
    import pyarrow as pa

    return pa.schema([
        ("trial_id", pa.string()),
        ("role", pa.string()),           # producer | consumer
        ("client", pa.int32()),
        ("window_number", pa.int32()),   # 0 outside of windows
        ("partition", pa.int32()),       # -1 where a slice covers several
        ("requests", pa.int32()),        # 1, or how many the slice covers
        ("messages", pa.int64()),
        ("bytes", pa.int64()),           # payload bytes
        ("sent_ns", pa.int64()),
        ("done_ns", pa.int64()),
        ("status", pa.string()),         # ok, or the error's name
        ("latency_index", pa.list_(pa.int32())),
        ("latency_count", pa.list_(pa.int64())),
    ])  # fmt: skip


def latency_schema() -> pa.Schema:
    """One row a trial, client and kind of latency; histograms of `bucket_of` indices."""
    import pyarrow as pa

    return pa.schema([
        ("trial_id", pa.string()),
        ("client", pa.int32()),
        ("window_number", pa.int32()),
        ("kind", pa.string()),           # end_to_end (producer's timestamp to receipt)
        ("latency_index", pa.list_(pa.int32())),
        ("latency_count", pa.list_(pa.int64())),
    ])  # fmt: skip


def history_schema() -> pa.Schema:
    """One row an operation on consecutive messages of a partition, and one a step of the script of faults.

    Times are CLOCK_MONOTONIC nanoseconds. A step has the verb as its operation, the node in `detail` and no messages.
    """
    import pyarrow as pa

    return pa.schema([
        ("trial_id", pa.string()),
        ("role", pa.string()),           # producer | consumer | script
        ("client", pa.int32()),
        ("operation", pa.string()),      # send | read | kill | pause | resume | terminate | start
        ("partition", pa.int32()),       # -1 of a step
        ("first", pa.uint64()),          # id of the first message: 16 bits of producer, 48 of counter
        ("messages", pa.int32()),
        ("offset", pa.int64()),          # of the first message; -1 where it is not known
        ("invoked_ns", pa.int64()),
        ("done_ns", pa.int64()),
        ("outcome", pa.string()),        # ok | fail (it certainly did not happen) | unknown
        ("detail", pa.string()),         # the error's name, or the node
    ])  # fmt: skip


class ResultsFolder:
    """The folder of one run. Every write is atomic: a temporary name, then a rename."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def manifest_path(self) -> Path:
        return self.path / MANIFEST

    def read_manifest(self) -> dict[str, Any] | None:
        """The manifest, or None where no run has written one. Raises `UserError` where it is not one of ours."""
        try:
            found: dict[str, Any] = json.loads(self.manifest_path.read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UserError(f"{self.manifest_path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"{self.manifest_path} is damaged: {error}") from error
        if fault := manifest_fault(found):
            raise UserError(f"{self.manifest_path} {fault}; name a new folder")
        return found

    def manifest_to_go_on_with(self) -> dict[str, Any] | None:
        """As `read_manifest`; None only where a run may begin: what else lies in a folder is not ours to write over.

        Raises `UserError` where something lies there and no manifest says that a run of ours put it there.
        """
        found = self.read_manifest()
        if found is None and (names := self._names()):
            shown = ", ".join(names[:_NAMES_SHOWN_MAX]) + (", ..." if len(names) > _NAMES_SHOWN_MAX else "")
            raise UserError(
                f"{self.path} is not empty ({shown}) and has no {MANIFEST}, so it is no run's folder: name a new one "
                f"with --out, or put the run's {MANIFEST} back"
            )
        return found

    def _names(self) -> list[str]:
        """The folder's content, without the remains of a run that was killed before its manifest was there."""
        unfinished = f".{MANIFEST}.*.tmp"
        found = (path for path in self.path.glob("*") if path.name != LOCK and not path.match(unfinished))
        return sorted(path.name for path in found)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.manifest_path, json.dumps(manifest, indent=2, sort_keys=True).encode() + b"\n")

    def finished_trials(self) -> dict[str, tuple[str, str]]:
        """Trial id -> (verdict, reason), of every trial whose row is on disk. Raises `UserError` for a damaged row.

        A trial that has its row and lacks its other records has failed: it is not finished, and the next run does it
        again. Only the end of each of these files is read, so damage in the middle shows when they are analysed.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        found: dict[str, tuple[str, str]] = {}
        for path in sorted((self.path / TRIALS).glob("*.parquet")):
            try:
                rows = pq.read_table(path, columns=["trial_id", "verdict", "reason"]).to_pylist()
            except pa.ArrowException as error:
                raise UserError(f"{path} is damaged; remove it, and the trial runs again ({error})") from error
            lost = self._lost_beside(path.name)
            for row in rows:
                found[row["trial_id"]] = ("failed", lost) if lost else (row["verdict"], row["reason"])
        return found

    def _lost_beside(self, name: str) -> str:
        """Which records of a trial are not there beside its row, and what to do; empty where all are."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for kind in (REQUESTS, LATENCY):
            path = self.path / kind / name
            try:
                pq.read_metadata(path)
            except (pa.ArrowException, OSError):
                how = "damaged" if path.exists() else "missing"
                return f"{path} is {how}; a run with --out {self.path} does the trial again"
        return ""

    def write_trial(
        self,
        trial: Mapping[str, Any],
        requests: pa.Table | Sequence[Mapping[str, Any]],
        latency: Sequence[Mapping[str, Any]] = (),
        history: pa.Table | None = None,
    ) -> None:
        """Write one trial's raw records; the row in `trials/` last."""
        name = file_name(str(trial["trial_id"]))
        if history is not None:
            self._write(HISTORY, name, history, history_schema())
        self._write(REQUESTS, name, requests, request_schema())
        self._write(LATENCY, name, latency, latency_schema())
        self._write(TRIALS, name, [trial], trial_schema())

    def _write(self, kind: str, name: str, rows: pa.Table | Sequence[Mapping[str, Any]], schema: pa.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = self.path / kind
        folder.mkdir(parents=True, exist_ok=True)
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
        with replacing(folder / name) as temporary:
            pq.write_table(table, temporary, compression="zstd")


def manifest_fault(found: object) -> str:
    """Why what a manifest.json holds is not what this version writes; empty where it is."""
    if not isinstance(found, dict) or found.get("schema_version") != SCHEMA_VERSION:
        return "was written by another version of brokerlab"
    missing = sorted(_MANIFEST_KEYS - found.keys())
    return f"is damaged: it lacks {', '.join(missing)}" if missing else ""


def file_name(trial_id: str) -> str:
    """The file of a trial in each folder; the id's own characters as far as a file system takes them."""
    return "".join(c if c.isalnum() or c in "=.,_-" else "__" for c in trial_id) + ".parquet"


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` in place of the file in one step: a reader finds the old content or the new, never a mixture."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write the file that is lent; it takes the place of `path` if nothing went wrong."""
    # Not ending in .parquet and hidden, so that no reader of the folder takes it for a record.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
