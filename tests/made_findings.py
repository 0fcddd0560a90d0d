"""Findings of made records without Spark, so that what arranges findings is tested without a JVM.

Here plain Python makes the sums that Spark makes of raw records, in another way; all that follows from them is the
product's own code. `tests/unit/analysis/test_pipeline.py` holds these findings to those of Spark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.engine import TRIAL, Engine
from analysis.findings import Findings
from analysis.measures.latency import QUANTILES
from analysis.pipeline import computed
from tests import made_records
from tests.made_records import MadeTrial
from workloads import results

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
ROLES = {"producer": "production", "consumer": "consumption"}
SLICE_NS = 20_000_000


def of(trials: Iterable[MadeTrial], manifest: Mapping[str, Any] | None = None) -> Findings:
    """What the analysis finds of these trials, each of which has both roles."""
    return computed(engine(trials), lambda step: None, manifest or {})


def engine(trials: Iterable[MadeTrial]) -> Engine:
    """The sums of these trials."""
    return MadeEngine([_Trial.of(made) for made in trials])


def small() -> Findings:
    """Of the run that the tests of DataFrame functions analyse, too."""
    return of(made_records.small_run())


def rounds() -> Findings:
    """Of timed windows in rounds, with an A/A, two loads, disturbed windows, and windows with too few messages."""
    return of(made_records.rounds_run())


def foreign() -> Findings:
    """Of the run in which one system counts next to nothing."""
    return of(made_records.foreign_run())


@dataclass(frozen=True, slots=True)
class _Trial:
    made: MadeTrial
    row: Row
    requests: Sequence[Row]

    @classmethod
    def of(cls, made: MadeTrial) -> _Trial:
        return cls(made, made_records.trial_row(made), made_records.request_table(made).to_pylist())


@dataclass(frozen=True, slots=True)
class MadeEngine:
    """The queries of `analysis.engine`, by plain Python."""

    made: Sequence[_Trial]

    def trials(self) -> list[Row]:
        return [{name: trial.row[name] for name in TRIAL} for trial in self.made]

    def window_sums(self) -> list[Row]:
        return [row for trial in self.made for row in _window_sums(trial)]

    def resource_sums(self) -> list[Row]:
        return [_resources(key, own) for key, own in self._entries("resources", "role", "process")]

    def coordination_sums(self) -> list[Row]:
        return [
            key
            | {name: _sum(entry[name] for entry in own) for name in ("count", "bytes")}
            | {"wait_us": _sum(_microseconds(entry["wait_s"]) for entry in own)}
            for key, own in self._entries("coordination", "operation", "operation")
        ]

    def request_sums(self) -> list[Row]:
        return [
            key | {name: _sum(entry[name] for entry in own) for name in ("messages", "requests")}
            for key, own in self._entries("broker_requests", "operation", "operation")
        ]

    def quantiles(self, named: pa.Table) -> list[Row]:
        places = {(row["trial_id"], row["number"]): row["name"] for row in named.to_pylist()}
        merged: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
        for trial in self.made:
            for number, kind, bucket, count in _histogram(trial):
                if (trial.made.trial_id, number) in places:
                    merged[places[trial.made.trial_id, number], kind][bucket] += count
        return [
            {"name": name, "kind": kind, "n": counts.total()}
            | {f"{q}_ns": highest_ns(_reached(counts, counts.total() * share)) for q, share in QUANTILES.items()}
            for (name, kind), counts in merged.items()
        ]

    def slices(self, looked_at: pa.Table) -> list[Row]:
        rows = []
        for at in looked_at.to_pylist():
            (trial,) = (trial for trial in self.made if trial.made.trial_id == at["trial_id"])
            counts: Counter[int] = Counter()
            for one in trial.requests:
                if (ROLES[one["role"]], one["window_number"]) == (at["role"], at["number"]):
                    counts[(one["done_ns"] - at["first_ns"]) // at["slice_ns"]] += one["messages"]
            whole = (at["last_ns"] - at["first_ns"]) // at["slice_ns"]
            rows += [
                {"place": at["place"], "slice": number, "slice_ns": at["slice_ns"], "messages": messages}
                for number, messages in counts.items()
                if number < whole
            ]
        return rows

    def _entries(self, column: str, field: str, name: str) -> Iterator[tuple[Row, list[Row]]]:
        for trial in self.made:
            groups: dict[tuple[int, str, str], list[Row]] = defaultdict(list)
            for entry in trial.row[column] or ():
                groups[entry["number"], entry["window"], entry[field]].append(entry)
            for (number, window, value), own in groups.items():
                yield {"trial_id": trial.made.trial_id, "number": number, "window": window, name: value}, own


def _window_sums(trial: _Trial) -> Iterator[Row]:
    windows = {window["number"]: window for window in trial.row["windows"]}
    groups: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for one in trial.requests:
        place = _slice(windows[one["window_number"]], one["done_ns"])
        groups[ROLES[one["role"]], one["window_number"], place].append(one)
    for (role, number, place), own in groups.items():
        yield {
            "trial_id": trial.made.trial_id,
            "role": role,
            "number": number,
            "slice": place,
            "messages": sum(one["messages"] for one in own),
            "requests": sum(one["requests"] for one in own),
            "failed": 0,
            "backwards": sum(one["done_ns"] < one["sent_ns"] for one in own),
            "first_ns": min(one["sent_ns"] for one in own),
            "last_ns": max(one["done_ns"] for one in own),
        }


def _slice(window: Row, done_ns: int) -> int:
    """-1 before the window opened, -2 after it closed; windows here are shorter than 5 s."""
    if window["opened_ns"] is None:
        return 0
    if done_ns <= window["opened_ns"]:
        return -1
    if done_ns > window["closed_ns"]:
        return -2
    return int((done_ns - window["opened_ns"] - 1) // SLICE_NS)


def _resources(key: Row, own: Sequence[Row]) -> Row:
    cpu = [
        None if entry["cpu_user_s"] is None else _microseconds(entry["cpu_user_s"] + entry["cpu_system_s"])
        for entry in own
    ]
    busy = [us / (entry["wall_s"] * 1e6) for us, entry in zip(cpu, own, strict=True) if us is not None]
    memory = [entry["rss_max_bytes"] for entry in own if entry["rss_max_bytes"] is not None]
    return {
        **key,
        "cpu_us": _sum(cpu),
        "cores_busiest": max(busy, default=None),
        "rss_max_bytes": max(memory, default=None),
        **{name: _sum(entry[name] for entry in own) for name in ("written_bytes", "received_bytes", "sent_bytes")},
        "gc_pause_us": _sum(_microseconds(entry["gc_pause_s"]) for entry in own),
        "coordination_cpu_us": _sum(_microseconds(entry["coordination_cpu_s"]) for entry in own),
    }


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)


def highest_ns(bucket: int) -> int:
    """The highest value of a histogram's bucket: the next one is another bucket's."""
    low, high = 0, 1 << 62
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if results.bucket_of(middle) <= bucket else (low, middle - 1)
    return low


def _histogram(trial: _Trial) -> Iterator[tuple[int, str, int, int]]:
    """Number of the window, kind of latency, bucket and how many."""
    for row in made_records.latency_rows(trial.made):
        for bucket, count in zip(row["latency_index"], row["latency_count"], strict=True):
            yield row["window_number"], row["kind"].replace("_", " "), bucket, count
    for row in trial.requests:
        buckets = row["latency_index"] or [results.bucket_of(row["done_ns"] - row["sent_ns"])]
        for bucket, count in zip(buckets, row["latency_count"] or [1], strict=True):
            yield row["window_number"], f"{row['role']} request", bucket, count


def _reached(counts: Counter[int], wanted: float) -> int:
    upto = 0
    for bucket in sorted(counts):
        upto += counts[bucket]
        if upto * 1000 >= round(wanted * 1000):
            return bucket
    raise AssertionError("a share is at most 1")


def alone(found: Findings, name: str) -> Findings:
    """As if one architecture had been measured by itself."""

    def only(rows: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        return tuple(row for row in rows if row["architecture"] == name)

    return replace(
        found,
        windows=only(found.windows), trials=only(found.trials), cells=only(found.cells), latency=only(found.latency),
        load=only(found.load), resources=only(found.resources), batches=only(found.batches), ratios=(), pooled=(),
        zero=(), coordination=(), paper_comparison=(),
    )  # fmt: skip
