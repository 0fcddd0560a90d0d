"""Findings of made records by plain Python, so that what arranges findings is tested without a JVM.

`tests/unit/analysis/test_pipeline.py` holds them to what Spark finds of the same records. Rates over time and the audit
of the published tables are left out: tests that need some make a row of their own.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

from analysis.findings import CONTROL, PAPER_PAIR, ROLES, Findings, in_order
from analysis.measures.costs import HELD_EQUAL
from analysis.measures.latency import QUANTILES
from analysis.measures.paper import TABLES
from analysis.measures.student_t import quantile
from tests import made_records
from tests.made_records import MadeTrial
from workloads import results

Row = dict[str, Any]
_AXES = ("message_size", "batch_size", "mode")
CLIENTS = {"production": "producer", "consumption": "consumer"}
AUDITED = {"finding": "one cell, two published results", "where": "dsbs, 32 bytes", "evidence": "0.45 times"}


def of(trials: Iterable[MadeTrial]) -> Findings:
    """What Spark finds of these trials, each of which has both roles."""
    rows = [_Trial(made, made_records.trial_row(made)) for made in trials]
    rated = [row for trial in rows for row in trial.rated()]
    _mark_blocks(rated)
    valid = [trial for trial in rows if trial.made.kind == "measured" and trial.row["verdict"] == "valid"]
    values = [row for row in rated if row["kind"] == "measured" and row["verdict"] == "valid"]
    cells = [_cell(metric, own) for metric in ("rps", "kbps") for own in _by_cell(values)]
    ratios = list(_ratios(values))
    numbers = published()
    return Findings(
        trials=in_order(rated, "try", "trial_id"),
        cells=in_order(cells),
        ratios=in_order(ratios, "against_rank", "against"),
        latency=in_order(_latency(valid), "kind"),
        over_time=(),
        coordination=in_order(_coordination(valid), "operation"),
        resources=in_order(_resources(valid), "process"),
        batches=in_order(_batches(valid)),
        equality=tuple(_equality([trial for trial in rows if trial.made.kind == "measured"])),
        published=numbers,
        paper_comparison=in_order(_paper_comparison(numbers, ratios), "table"),
        paper_audit=(AUDITED,),
        scale=(),
    )


def small() -> Findings:
    """Of the run that the tests of DataFrame functions analyse, too."""
    return of(made_records.small_run())


def foreign() -> Findings:
    """Of the run in which one system counts next to nothing."""
    return of(made_records.foreign_run())


def published() -> tuple[Row, ...]:
    kinds = {"message_size": int, "batch_size": int, "value": float}
    with TABLES.open(newline="") as file:
        return tuple({key: kinds.get(key, str)(text) for key, text in row.items()} for row in csv.DictReader(file))


@dataclass(frozen=True, slots=True)
class _Trial:
    made: MadeTrial
    row: Mapping[str, Any]

    @property
    def group(self) -> Row:
        """Cell and architecture."""
        names = ("cell", *_AXES, "architecture", "architecture_rank")
        return {name: self.row[name] for name in names} | {"others": self.made.others}

    def rated(self) -> Iterator[Row]:
        names = ("trial_id", "kind", "try", "position", "sent", "acknowledged", "stored", "consumed")
        requests = made_records.request_table(self.made).to_pylist()
        for role, client in CLIENTS.items():
            own = [one for one in requests if one["role"] == client]
            first, last = own[0]["sent_ns"], own[-1]["done_ns"]
            window_s = (last - first) / 1e9
            messages = sum(one["messages"] for one in own)
            rps = messages / window_s if self.row["verdict"] == "valid" else None
            yield (
                self.group
                | {name: self.row[name] for name in names}
                | {
                    "system": self.row["system"],
                    "verdict": self.row["verdict"],
                    "reason": self.row["reason"],
                    "role": role,
                    "first_ns": first,
                    "last_ns": last,
                    "messages_done": messages,
                    "requests_done": sum(one["requests"] for one in own),
                    "requests_failed": 0,
                    "window_s": window_s,
                    "rps": rps,
                    "kbps": None if rps is None else rps * self.made.message_size / 1000,
                    "short_window": window_s < 0.25,
                }
            )


def _mark_blocks(rated: Sequence[Row]) -> None:
    """Calibration trials say how noisy their block was."""
    for row in rated:
        block = [one for one in rated if (one["try"], one["kind"]) == (row["try"], "calibration")]
        rates = {role: [one["rps"] for one in block if one["role"] == role and one["rps"]] for role in ROLES}
        spreads = {role: max(own) / min(own) for role, own in rates.items() if len(own) > 1}
        row["spread"] = spreads.get(row["role"])
        row["noisy"] = max(spreads.values()) > 1.15 if spreads else None


def _by_cell(rows: Iterable[Row], *more: str) -> Iterator[list[Row]]:
    """Rows of one cell, role and architecture, by try."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("cell", "role", "architecture_rank", "architecture", *more))

    for _, own in groupby(sorted(rows, key=lambda row: (key(row), row["try"])), key):
        yield list(own)


def _named(row: Row, *more: str) -> Row:
    return {name: row[name] for name in ("cell", "others", *_AXES, "architecture", "architecture_rank", *more)}


def _interval(values: Sequence[float]) -> tuple[float, float | None, float | None, float | None]:
    """Mean, standard deviation, and both ends of the 95 % interval."""
    mean = fmean(values)
    if len(values) == 1:
        return mean, None, None, None
    half = quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return mean, stdev(values), mean - half, mean + half


def _cell(metric: str, tries: Sequence[Row]) -> Row:
    values = [row[metric] for row in tries]
    mean, sd, low, high = _interval(values)
    return _named(tries[0], "role") | {
        "metric": metric, "n": len(values), "mean": mean, "sd": sd, "low": low, "high": high,
        "cv": None if sd is None else sd / mean, "geometric": math.exp(fmean(map(math.log, values))),
    }  # fmt: skip


def _ratios(values: Sequence[Row]) -> Iterator[Row]:
    groups = list(_by_cell(values))
    for one in groups:
        for base in groups:
            if (one[0]["cell"], one[0]["role"]) == (base[0]["cell"], base[0]["role"]) and _place(one) > _place(base):
                by_try = {row["try"]: row["rps"] for row in base}
                logs = [math.log(row["rps"] / by_try[row["try"]]) for row in one if row["try"] in by_try]
                if logs:
                    yield _named(one[0], "role") | {"metric": "rps", **_against(base[0]), **_ratio(logs)}


def _place(tries: Sequence[Row]) -> int:
    return -1 if tries[0]["architecture"] == CONTROL else int(tries[0]["architecture_rank"])


def _against(base: Row) -> Row:
    return {"against": base["architecture"], "against_rank": base["architecture_rank"]}


def _ratio(logs: Sequence[float]) -> Row:
    mean, _, low, high = _interval(logs)
    verdict = "not distinguishable"
    if low is None or high is None:
        verdict = "one try"
    elif low > 0 or high < 0:
        verdict = "faster" if low > 0 else "slower"
    ends = [None if end is None else math.exp(end) for end in (low, high)]
    return {"n": len(logs), "ratio": math.exp(mean), "low": ends[0], "high": ends[1], "verdict": verdict}


def highest_ns(bucket: int) -> int:
    """The highest value of a histogram's bucket: the next one is another bucket's."""
    low, high = 0, 1 << 62
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if results.bucket_of(middle) <= bucket else (low, middle - 1)
    return low


def _latency(trials: Sequence[_Trial]) -> Iterator[Row]:
    merged: dict[tuple[str, str, str], Counter[int]] = {}
    groups: dict[tuple[str, str], Row] = {}
    for trial in trials:
        name = (trial.made.cell, trial.made.architecture)
        groups[name] = trial.group
        for kind, bucket, count in _histogram(trial.made):
            merged.setdefault((*name, kind), Counter())[bucket] += count
    for (cell, architecture, kind), counts in merged.items():
        total = counts.total()
        yield (
            groups[cell, architecture]
            | {"kind": kind, "n": total}
            | {f"{name}_ns": highest_ns(_reached(counts, total * share)) for name, share in QUANTILES.items()}
        )


def _histogram(made: MadeTrial) -> Iterator[tuple[str, int, int]]:
    """Kind of latency, bucket and how many."""
    for row in made_records.latency_rows(made):
        for bucket, count in zip(row["latency_index"], row["latency_count"], strict=True):
            yield row["kind"].replace("_", " "), bucket, count
    for row in made_records.request_table(made).to_pylist():
        buckets = row["latency_index"] or [results.bucket_of(row["done_ns"] - row["sent_ns"])]
        for bucket, count in zip(buckets, row["latency_count"] or [1], strict=True):
            yield f"{row['role']} request", bucket, count


def _reached(counts: Counter[int], wanted: float) -> int:
    upto = 0
    for bucket in sorted(counts):
        upto += counts[bucket]
        if upto * 1000 >= round(wanted * 1000):
            return bucket
    raise AssertionError("a share is at most 1")


def _entries(trials: Sequence[_Trial], column: str, name: str) -> Iterator[tuple[Row, list[Row], int]]:
    """By cell, architecture, window and `name`: what tells them apart, the entries, and the messages of the window."""
    entries: dict[tuple[str, str, str, str], list[Row]] = {}
    groups: dict[tuple[str, str], Row] = {}
    messages: Counter[tuple[str, str]] = Counter()
    for trial in trials:
        key = (trial.made.cell, trial.made.architecture)
        groups[key] = trial.group
        messages[key] += trial.made.messages
        for entry in trial.row[column] or ():
            entries.setdefault((*key, entry["window"], entry[name]), []).append(entry)
    for (cell, architecture, window, value), own in entries.items():
        key = (cell, architecture)
        yield groups[key] | {"window": window, name: value}, own, messages[key]


def _sum(entries: Iterable[Row], name: str) -> float | None:
    counted = [entry[name] for entry in entries if entry[name] is not None]
    return sum(counted) if counted else None


def _each(entries: Sequence[Row], name: str, messages: float, scale: float = 1) -> float | None:
    total = _sum(entries, name)
    return None if total is None else total * scale / messages


def _coordination(trials: Sequence[_Trial]) -> Iterator[Row]:
    for group, entries, messages in _entries(trials, "coordination", "operation"):
        if _sum(entries, "count") or _sum(entries, "wait_s"):
            yield group | {
                "operations": _each(entries, "count", messages, 1000),
                "bytes": _each(entries, "bytes", messages, 1000),
                "wait_ms": _each(entries, "wait_s", messages, 1_000_000),
            }


def _resources(trials: Sequence[_Trial]) -> Iterator[Row]:
    for group, entries, messages in _entries(trials, "resources", "role"):
        known = [entry for entry in entries if entry["cpu_user_s"] is not None]
        busy = [(entry["cpu_user_s"] + entry["cpu_system_s"]) / entry["wall_s"] for entry in known]
        memory = [entry["rss_max_bytes"] for entry in entries if entry["rss_max_bytes"] is not None]
        user, system = (_each(known, name, messages, 1e6) for name in ("cpu_user_s", "cpu_system_s"))
        yield {name: value for name, value in group.items() if name != "role"} | {
            "process": group["role"],
            "cpu_us_per_message": None if user is None or system is None else user + system,
            "cores_busiest": max(busy, default=None),
            "rss_max_mb": max(memory) / (1 << 20) if memory else None,
            "written_bytes_per_message": _each(entries, "written_bytes", messages),
            "received_bytes_per_message": _each(entries, "received_bytes", messages),
            "sent_bytes_per_message": _each(entries, "sent_bytes", messages),
            "gc_pause_us_per_message": _each(entries, "gc_pause_s", messages, 1e6),
            "coordination_cpu_us_per_message": _each(entries, "coordination_cpu_s", messages, 1e6),
        }


def _batches(trials: Sequence[_Trial]) -> Iterator[Row]:
    served: dict[tuple[str, str, str], list[Row]] = {}
    for group, entries, _ in _entries(trials, "broker_requests", "operation"):
        role = {"produce": "production", "fetch": "consumption"}[group["operation"]]
        served.setdefault((group["cell"], group["architecture"], role), []).extend(entries)
    for own in _by_cell(row for trial in trials for row in trial.rated()):
        by_brokers = served.get((own[0]["cell"], own[0]["architecture"], own[0]["role"]), [])
        yield _named(own[0], "role") | {
            "client": sum(row["messages_done"] for row in own) / sum(row["requests_done"] for row in own),
            "broker": _each(by_brokers, "messages", _sum(by_brokers, "requests") or 1),
        }


def _equality(trials: Sequence[_Trial]) -> Iterator[Row]:
    for setting in HELD_EQUAL:
        by_cell: dict[str, set[str]] = {}
        for trial in trials:
            value = trial.row[setting]
            unknown = "max" if setting == "rate" else "not known"
            by_cell.setdefault(trial.made.cell, set()).add(unknown if value is None else str(value))
        values = ", ".join(sorted(set().union(*by_cell.values())))
        differ = sum(len(own) > 1 for own in by_cell.values())
        yield {"setting": setting, "found": values, "cells_that_differ": differ}


def _paper_comparison(numbers: Sequence[Row], ratios: Sequence[Row]) -> Iterator[Row]:
    axes = (*_AXES, "role")
    averages = {
        (row["table"], row["architecture"], *(row[name] for name in axes)): row["value"]
        for row in numbers
        if (row["metric"], row["try"]) == ("rps", "avg")
    }
    words = {"faster": ("yes", "holds"), "slower": ("no", "the opposite holds")}
    for (table, architecture, *place), value in averages.items():
        base = averages.get((table, PAPER_PAIR[1], *place))
        if architecture != PAPER_PAIR[0] or base is None:
            continue
        for row in ratios:
            if (row["architecture"], row["against"]) == PAPER_PAIR and [row[name] for name in axes] == place:
                direction, hypothesis = words.get(row["verdict"], (row["verdict"], f"open: {row['verdict']}"))
                if value < base and row["verdict"] in words:
                    direction = {"yes": "no", "no": "yes"}[direction]
                yield dict(zip(axes, place, strict=True)) | {
                    "table": table, "published": value / base, "direction": direction, "hypothesis": hypothesis,
                    "inside": None if row["low"] is None else row["low"] <= value / base <= row["high"],
                } | {name: row[name] for name in ("n", "ratio", "low", "high", "verdict")}  # fmt: skip


def alone(found: Findings, name: str) -> Findings:
    """As if one architecture had been measured by itself."""

    def only(rows: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        return tuple(row for row in rows if row["architecture"] == name)

    return replace(
        found,
        trials=only(found.trials), cells=only(found.cells), latency=only(found.latency), ratios=(),
        coordination=(), resources=only(found.resources), batches=only(found.batches), paper_comparison=(),
    )  # fmt: skip
