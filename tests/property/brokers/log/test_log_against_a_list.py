"""The log does what a plain list of batches does, whatever happens to it in between."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from brokers.log.config import FsyncPolicy
from brokers.log.errors import LogDiskFailed, LogOffsetOutOfRange
from brokers.log.file_range import Stretch
from brokers.wire.batch import parse_header
from tests.unit.brokers.log.batches import SMALL, abandon, arrived, batch, everything, offsets, opened, row, split

PRODUCER_ID = 7


class LogAgainstList(RuleBasedStateMachine):
    """Every rule does the same to the log and to `batches`, pairs of (base offset, bytes)."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="log-"))
        self.batches: list[tuple[int, bytes]] = []
        self.start = self.end = self.epoch = self.clock = 0
        self.sent: list[tuple[int, int, int]] = []  # (sequence, records, offset) of the idempotent producer
        self.lent: list[tuple[Stretch, bytes]] = []
        self.cut = False

    @initialize(fsync=st.sampled_from(FsyncPolicy), bytes_kept=st.sampled_from([None, 1000]))
    def open(self, fsync: FsyncPolicy, bytes_kept: int | None) -> None:
        self.config = replace(SMALL, fsync=fsync, retention_bytes=bytes_kept)
        self.log = opened(self.directory / "log", self.config)

    def note(self, data: bytes | bytearray | memoryview, records: int) -> int:
        self.batches.append((self.end, bytes(data)))
        self.end += records
        return self.end - records

    @rule(calls=st.lists(st.lists(st.binary(max_size=60), min_size=1, max_size=5), min_size=1, max_size=4))
    def append(self, calls: list[list[bytes]]) -> None:
        made = [batch(*values, timestamp=self.clock) for values in calls]
        results = self.log.append(made, self.epoch)
        assert results == [self.note(data, header.records_count) for data, header in made]
        self.clock += 10

    @rule(count=st.integers(1, 12), length=st.integers(0, 60))
    def append_a_row(self, count: int, length: int) -> None:
        made = row(*[bytes([number]) * length for number in range(count)], timestamp=self.clock)
        results = self.log.append_row(made, self.epoch)
        assert list(results) == [self.note(data, 1) for data in made.batches()]
        self.clock += 10

    @rule(records=st.integers(1, 4))
    def append_idempotent(self, records: int) -> None:
        sequence = sum(self.sent[-1][:2]) if self.sent else 0
        data, header = batch(*[b"i"] * records, timestamp=self.clock, producer=(PRODUCER_ID, 0, sequence))
        results = self.log.append([(data, header)], self.epoch)
        self.sent.append((sequence, records, self.end))
        assert results == [self.note(data, records)]

    @precondition(lambda self: self.sent)
    @rule(back=st.integers(1, 5))
    def append_again_what_was_sent(self, back: int) -> None:
        sequence, records, offset = self.sent[-min(back, len(self.sent))]
        again = batch(*[b"i"] * records, producer=(PRODUCER_ID, 0, sequence))
        assert offsets(self.log.append([again], self.epoch)) == [offset]

    @rule()
    def begin_an_epoch(self) -> None:
        self.epoch += 2

    @rule(at=st.integers(0, 100), bytes_max=st.integers(1, 2000), records_max=st.none() | st.integers(1, 20))
    def read(self, at: int, bytes_max: int, records_max: int | None) -> None:
        if self.start == self.end:
            return
        offset = self.start + at * (self.end - self.start) // 101
        data = self.log.reader.read(offset, bytes_max, records_max)
        lent = self.log.reader.lend(offset, bytes_max, records_max, read_bytes_max=0)
        assert isinstance(lent, Stretch)
        self.lent.append((lent, data))
        answer = split(data)
        first = max(number for number, (base, _) in enumerate(self.batches) if base <= offset)
        expected = [data for _, data in self.batches[first : first + len(answer)]]
        assert answer == expected
        assert len(answer) == 1 or (sum(map(len, answer)) <= bytes_max)
        counts = sum(parse_header(data).records_count for data in answer)
        assert len(answer) == 1 or counts <= (records_max or counts)
        self.assert_no_more_would_fit(first + len(answer), answer, bytes_max, records_max)

    def assert_no_more_would_fit(
        self, following: int, answer: list[bytes], bytes_max: int, records_max: int | None
    ) -> None:
        if following == len(self.batches) or self.segment_begins_with(self.batches[following][0]):
            return
        more = [*answer, self.batches[following][1]]
        too_many_bytes = sum(map(len, more)) > bytes_max
        too_many_records = sum(parse_header(data).records_count for data in more) > (records_max or 1 << 30)
        assert too_many_bytes or too_many_records

    def segment_begins_with(self, offset: int) -> bool:
        return (self.directory / "log" / f"{offset:020}.log").exists()

    @rule()
    def read_outside(self) -> None:
        assert self.log.reader.read(self.end, 100) == b""
        for offset in (self.start - 1, self.end + 1):
            with pytest.raises(LogOffsetOutOfRange):
                self.log.reader.read(offset, 100)

    @rule()
    def read_what_was_lent(self) -> None:
        """It is still the same, whatever became of its segment, unless that was cut."""
        for lent, data in self.lent:
            try:
                assert arrived(lent) == data
            except LogDiskFailed:
                assert self.cut
        self.lent = []

    @rule(back=st.integers(0, 30))
    def truncate(self, back: int) -> None:
        offset = max(self.start, self.end - back)
        while self.batches and self.end > offset:
            self.end, _ = self.batches.pop()
        self.sent = [sent for sent in self.sent if sent[2] < self.end]
        assert self.log.truncate_to(offset) == self.end
        self.cut = True

    @rule()
    def flush(self) -> None:
        self.log.syncing.flush()
        assert self.log.syncing.synced_offset == self.end

    @rule()
    def flush_sealed(self) -> None:
        flush = self.log.syncing.begin(sealed_only=True)
        if flush is not None:
            flush.run()
            self.log.syncing.end(flush)

    @rule()
    def retain(self) -> None:
        self.log.retain(now_ms=5000)
        self.start = self.log.start_offset
        self.batches = [(base, data) for base, data in self.batches if base >= self.start]

    @rule()
    def close_and_open(self) -> None:
        assert self.log.close()
        self.read_what_was_lent()
        self.log = opened(self.directory / "log", self.config)
        assert self.log.recovery.clean
        assert self.log.recovery.scanned_bytes == 0

    @rule(torn=st.integers(0, 90))
    def crash_and_open(self, torn: int) -> None:
        abandon(self.log)
        self.lent = []
        last = max((self.directory / "log").glob("*.log"))
        data, _ = batch(b"was on its way", b"when the process died")
        with last.open("ab") as file:
            file.write(bytes(data)[:torn])
        self.log = opened(self.directory / "log", self.config)
        assert not self.log.recovery.clean
        assert sum(cut.bytes for cut in self.log.recovery.cuts) == torn

    @invariant()
    def ends_are_those_of_the_list(self) -> None:
        if hasattr(self, "log"):
            assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
            stored = [path.stat().st_size for path in (self.directory / "log").glob("*.log")]
            assert sum(stored) == sum(len(data) for _, data in self.batches)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            assert everything(self.log) == [data for _, data in self.batches]
            self.log.close()
        shutil.rmtree(self.directory)


LogAgainstList.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_log_does_what_a_list_does = LogAgainstList.TestCase
