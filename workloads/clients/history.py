"""The history of operations: what a client invoked and how it ended, for a checker to judge after the trial.

An operation ended with `ok`, with `fail` (it certainly did not happen) or with `unknown`. A client closes its history
when nothing is under way any more, so none is left open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from workloads.clients.client_files import NotWritten
from workloads.clients.drivers.api import ID_BYTES, NO_ID, OK
from workloads.results import history_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

SEND, READ = "send", "read"
FAIL, UNKNOWN = "fail", "unknown"
NO_OFFSET: Final = -1
ROWS_KEPT_MAX: Final = 4096  # in memory; then they go to the file


class Operation(NamedTuple):
    """One operation on consecutive messages of a partition."""

    operation: str
    partition: int
    first: int  # id of the first message
    messages: int
    offset: int  # of the first message
    invoked_ns: int
    done_ns: int
    outcome: str = OK
    detail: str = ""  # the error's name

    def goes_on(self, last: Operation) -> bool:
        """Whether this is what came behind `last` of the same invocation, so that one row says both."""
        offset = NO_OFFSET if last.offset == NO_OFFSET else last.offset + last.messages
        first = last.first + last.messages
        return self == last._replace(first=first, offset=offset, messages=self.messages, done_ns=self.done_ns)


class History:
    """Writes one client's operations, in the order of their ends."""

    def __init__(
        self, path: Path, role: str, client: int, tell_every: int = 0, tell: Callable[[int], None] = lambda _: None
    ) -> None:
        """`tell` hears the number of acknowledged messages, each time that so many more are; never where that is 0."""
        import pyarrow as pa

        self._path, self._role, self._client = path, role, client
        self._tell_every, self._tell = tell_every, tell
        self._acknowledged = self._told = 0
        self._kept: list[Operation] = []
        self._schema = history_schema().remove(0)  # the runner knows the trial's id
        try:
            self._writer = pa.ipc.new_file(str(path), self._schema)
        except OSError as error:
            raise self._refused(error) from error

    def note(self, ended: Operation) -> None:
        """Raises `NotWritten`."""
        if self._kept and ended.goes_on(last := self._kept[-1]):
            self._kept[-1] = last._replace(messages=last.messages + ended.messages, done_ns=ended.done_ns)
        else:
            if len(self._kept) == ROWS_KEPT_MAX:
                self._write()
            self._kept.append(ended)
        if ended.operation == SEND and ended.outcome == OK:
            self._acknowledged += ended.messages
            if self._tell_every and self._acknowledged - self._told >= self._tell_every:
                self._told = self._acknowledged
                self._tell(self._acknowledged)

    def read(
        self,
        partitions: Sequence[int],
        payloads: Sequence[bytes],
        offsets: Sequence[int],
        invoked_ns: int,
        done_ns: int,
    ) -> None:
        """Messages came together. Raises `NotWritten`."""
        for partition, payload, offset in zip(partitions, payloads, offsets, strict=True):
            first = int.from_bytes(payload[:ID_BYTES].ljust(ID_BYTES, NO_ID), "big")
            self.note(Operation(READ, partition, first, 1, offset, invoked_ns, done_ns))

    def close(self) -> None:
        """Raises `NotWritten`."""
        self._write()
        try:
            self._writer.close()
        except OSError as error:
            raise self._refused(error) from error

    def _write(self) -> None:
        import pyarrow as pa

        count = len(self._kept)
        columns = {"role": [self._role] * count, "client": [self._client] * count}
        columns |= {name: [each[at] for each in self._kept] for at, name in enumerate(Operation._fields)}
        try:
            self._writer.write_batch(pa.RecordBatch.from_pydict(columns, schema=self._schema))
        except OSError as error:
            raise self._refused(error) from error
        self._kept.clear()

    def _refused(self, error: OSError) -> NotWritten:
        return NotWritten(f"its history cannot be written to {self._path.parent}: {error.strerror or error}")


def history_path(out: Path) -> Path:
    """Where the client whose other files begin with `out` writes its history."""
    return out.with_suffix(".history")


def read_histories(outs: Sequence[Path]) -> pa.Table:
    """The operations of these clients. The files are mapped, not read, so memory stays bounded."""
    import pyarrow as pa

    return pa.concat_tables([pa.ipc.open_file(pa.memory_map(str(history_path(out)))).read_all() for out in outs])
