"""Findings of a run as large as `steady`, for the tests of the report: every kind of row, and every kind of verdict.

The numbers are drawn by a seeded generator and agree with each other only as far as the report can tell.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from analysis.findings import Findings, in_order
from analysis.measures.paper import audit, published

Row = dict[str, Any]
NAMES = ("zookeeper", "zookeeper-watch", "dsbs", "static", "static-again")
AGAIN = ("static-again", "static")
PRIMARY = (("dsbs", "zookeeper"), ("dsbs", "zookeeper-watch"))
SIZES_AND_BATCHES = ((32, 1), (8, 20), (16, 20), (32, 20), (64, 20), (128, 20), (32, 50))
FAMILIES = ("production", "consumption", "streaming")
BLOCKS, ROUNDS = 3, 2
LOADS = (0.3, 0.6, 0.9)
FLOOR = 1.03
# The rate of requests beside that of `static`, at one message a request.
_SPEEDS = {"zookeeper": 0.4, "zookeeper-watch": 0.98, "dsbs": 0.95, "static": 1.0, "static-again": 1.0}
# The rows of the architectures in the experiments file, as a manifest has them.
ROWS: list[Row] = [
    {"name": "zookeeper", "row": "zookeeper", "metadata": "lookup_each", "offsets": "zookeeper_each"},
    {"name": "zookeeper-watch", "row": "zookeeper", "metadata": "watch", "offsets": "zookeeper_interval",
     "offsets_interval_ms": 1000},
    {"name": "dsbs", "row": "dsbs", "metadata": "memory", "offsets": "journal_copied"},
    {"name": "static", "row": "static", "metadata": "memory", "offsets": "memory"},
    {"name": "static-again", "row": "static", "metadata": "memory", "offsets": "memory"},
]  # fmt: skip
MANIFEST: Row = {
    "profile": "steady",
    "started": "2026-11-19T12:00:00+00:00",
    "architectures": [row | {"system": "brokerlab"} for row in ROWS],
    "machine": {"cores": 2, "processor": "A processor", "memory_bytes": 8 << 30, "system": "Linux 6 x86_64"},
    "versions": {"confluent-kafka": "2.14.2"},
}
PROTOCOL: Row = {
    "schema_version": 3, "primary": [list(pair) for pair in PRIMARY], "window_s": 0.25, "rounds": [ROUNDS, ROUNDS],
    "precision": 0.1, "budget_s": 600, "spent_s": 512.0, "in_flight": [5], "fetch_ahead": [20], "blocks": BLOCKS,
    "cores": 2, "windows": 840, "disturbed": 32, "unsettled": 15, "few": 0, "unknown": 0, "duration_s": 0.25,
}  # fmt: skip


def steady() -> Findings:
    """Five architectures, seven cells in both modes, latency at three loads."""
    chance = random.Random(2017)
    cells = list(_cells(chance))
    ratios = list(_ratios(chance, cells))
    return Findings(
        trials=in_order(_trials(cells), "try", "trial_id"),
        cells=in_order(cells),
        ratios=in_order(ratios, "against_rank", "against"),
        latency=(),
        over_time=(),
        coordination=in_order(_coordination(), "operation"),
        resources=in_order(_resources(), "process"),
        batches=in_order(_batches(cells)),
        equality=tuple(
            {"setting": setting, "found": value, "cells_that_differ": 0}
            for setting, value in (("driver", "kafka"), ("in_flight", "5"), ("fetch_ahead", "20"), ("acks", "1"))
        ),
        published=published(),
        paper_audit=tuple(audit(published())),
        scale=(),
        paper_comparison=in_order(_paper(ratios), "table"),
        windows=in_order(_windows(chance, cells), "try", "number"),
        pooled=tuple(_pooled(chance)),
        zero=tuple(_zero()),
        load=in_order(_load(), "load"),
        protocol=PROTOCOL,
    )


def older() -> Findings:
    """The same records by the protocol of schema version 2."""
    found = steady()
    plain = {"schema_version": 2, "primary": []}
    return replace(found, zero=(), load=(), windows=(), protocol=plain)


def _axes(size: int, batch: int, mode: str, others: str = "") -> Row:
    cell = f"message_size={size},batch_size={batch},mode={mode}" + (f",{others}" if others else "")
    return {"cell": cell, "others": others, "message_size": size, "batch_size": batch, "mode": mode}


def _named(name: str) -> Row:
    return {"architecture": name, "architecture_rank": NAMES.index(name)}


def _against(name: str) -> Row:
    return {"against": name, "against_rank": NAMES.index(name)}


def _speed(name: str, batch: int) -> float:
    """The same at any batch size: what a request costs weighs less where it carries more."""
    return 1 / (1 + (1 / _SPEEDS[name] - 1) / math.sqrt(batch) * 2)


def _cells(chance: random.Random) -> Iterator[Row]:
    for size, batch in SIZES_AND_BATCHES:
        for mode in ("split", "streaming"):
            for role in ("production", "consumption"):
                for name in NAMES:
                    rps = 90_000 * math.sqrt(batch) * _speed(name, batch) * math.exp(chance.gauss(0, 0.02))
                    rps *= (0.5 if mode == "streaming" else 1) * (0.8 if role == "consumption" else 1)
                    for metric, scale in (("rps", 1.0), ("kbps", size / 1000)):
                        mean = rps * scale
                        yield _axes(size, batch, mode) | _named(name) | {
                            "role": role, "metric": metric, "n": BLOCKS, "windows": BLOCKS * ROUNDS, "mean": mean,
                            "geometric": mean * 0.999, "sd": mean * 0.03, "cv": 0.03, "low": mean * 0.93,
                            "high": mean * 1.07,
                        }  # fmt: skip


def _ratios(chance: random.Random, cells: list[Row]) -> Iterator[Row]:
    rates = [row for row in cells if row["metric"] == "rps"]
    for one in rates:
        for base in rates:
            same = all(one[key] == base[key] for key in ("cell", "role"))
            if same and _place(one["architecture"]) > _place(base["architecture"]):
                ratio = one["geometric"] / base["geometric"]
                half = abs(chance.gauss(0.06, 0.02)) + 0.01
                axes = {name: one[name] for name in _axes(8, 20, "split")}
                yield (
                    axes
                    | _named(one["architecture"])
                    | _against(base["architecture"])
                    | {"role": one["role"]}
                    | verdict(ratio, half)
                )


def _place(name: str) -> int:
    return -1 if name == "static" else NAMES.index(name)


def verdict(ratio: float, half: float) -> Row:
    """A row's numbers, for an interval that reaches `half` to both sides of the logarithm."""
    low, high = ratio * math.exp(-half), ratio * math.exp(half)
    decided = low > 1 or high < 1
    said = ("faster" if low > 1 else "slower") if decided else "undecided"
    return {
        "n": BLOCKS, "rounds": BLOCKS * ROUNDS, "ratio": ratio, "low": low, "high": high, "sd": half / 2,
        "degrees": 2, "moderated": True, "p": 0.001 if decided else 0.4, "verdict": said,
        "equal": low > 1 / 1.05 and high < 1.05, "survives": decided and abs(math.log(ratio)) > 0.1,
        "rounds_more": None if decided else 40,
    }  # fmt: skip


def _pooled(chance: random.Random) -> Iterator[Row]:
    for one in NAMES:
        for base in NAMES:
            if _place(one) <= _place(base):
                continue
            for place, family in enumerate(FAMILIES):
                ratio = _speed(one, 20) / _speed(base, 20) * (1 + 0.1 * place * ((one, base) in PRIMARY))
                half = 0.02 if one != "zookeeper-watch" else 0.08
                for metric, value in (("rps", ratio), ("cpu_us", ratio**-0.7)):
                    is_primary = (one, base) in PRIMARY and metric == "rps"
                    row = verdict(value * math.exp(chance.gauss(0, 0.004)), half)
                    if metric == "cpu_us":
                        row["verdict"] = {"faster": "dearer", "slower": "cheaper"}.get(row["verdict"], "undecided")
                    yield {name: row[name] for name in row if name not in ("rounds", "moderated", "survives")} | {
                        **_named(one), **_against(base), "family": family, "metric": metric, "left_out": 0,
                        "cells": len(SIZES_AND_BATCHES), "primary": is_primary,
                        "p_holm": row["p"] * 6 if is_primary else None,
                    }  # fmt: skip


def _zero() -> Iterator[Row]:
    for family in (*FAMILIES, "all"):
        comparisons = len(SIZES_AND_BATCHES) * (3 if family == "all" else 1)
        yield {
            **_named(AGAIN[0]), "against": AGAIN[1], "family": family, "n": BLOCKS, "ratio": 1.004, "low": 0.991,
            "high": 1.017, "comparisons": comparisons, "false_alarms": 1, "alarm_low": 0.001, "alarm_high": 0.238,
            "floor": FLOOR,
        }  # fmt: skip


def _windows(chance: random.Random, cells: list[Row]) -> Iterator[Row]:
    for cell in cells:
        if cell["metric"] != "rps":
            continue
        for block in range(1, BLOCKS + 1):
            for number in range(1, ROUNDS + 1):
                disturbed = chance.random() < 0.04
                rps = cell["geometric"] * math.exp(chance.gauss(0, 0.03))
                window = cell["role"] if cell["mode"] == "split" else "both"
                yield {name: cell[name] for name in (*_axes(8, 20, "split"), "architecture", "architecture_rank")} | {
                    "trial_id": f"{cell['cell']}/{cell['architecture']}/{block}", "kind": "measured", "try": block,
                    "system": "brokerlab", "round": number, "place": 1, "number": number, "window": window,
                    "role": cell["role"], "verdict": "valid", "reason": "", "messages": round(rps / 4),
                    "window_s": 0.25, "rps": rps, "kbps": rps * cell["message_size"] / 1000,
                    "foreign": 0.09 if disturbed else 0.01, "attempts": 1 + disturbed, "used": True,
                    "disturbed": disturbed, "unsettled": chance.random() < 0.02, "few": False,
                }  # fmt: skip


def _trials(cells: list[Row]) -> Iterator[Row]:
    for cell in cells:
        if cell["metric"] != "rps":
            continue
        for block in range(1, BLOCKS + 1):
            rps = cell["mean"] * (1 + (block - 2) / 50)
            yield {name: cell[name] for name in (*_axes(8, 20, "split"), "architecture", "architecture_rank")} | {
                "trial_id": f"{cell['cell']}/{cell['architecture']}/{block}", "kind": "measured", "try": block,
                "position": block, "system": "brokerlab", "role": cell["role"], "verdict": "valid", "reason": "",
                "sent": 30_000, "acknowledged": 30_000, "stored": 30_000, "consumed": 30_000, "window_s": 0.25,
                "rps": rps, "kbps": rps * cell["message_size"] / 1000, "short_window": False, "spread": None,
                "noisy": None,
            }  # fmt: skip


def _ends(mode: str) -> Iterator[tuple[str, str]]:
    """Window and role of what is counted."""
    for role in ("production", "consumption"):
        yield ("both" if mode == "streaming" else role, role)


def _coordination() -> Iterator[Row]:
    asked = {"zookeeper": 1000.0, "dsbs": 4.0, "zookeeper-watch": 2.0}
    for size, batch in SIZES_AND_BATCHES:
        for mode in ("split", "streaming"):
            for window, role in _ends(mode):
                for name, operations in asked.items():
                    each = operations / batch if name == "zookeeper" else operations
                    operation = {"zookeeper": "lookup", "dsbs": "digest"}.get(name, "watch")
                    yield _axes(size, batch, mode) | _named(name) | {
                        "window": window, "role": role, "operation": operation, "operations": each,
                        "bytes": each * 80, "wait_ms": each * 0.4 if name == "zookeeper" else None,
                    }  # fmt: skip


def _resources() -> Iterator[Row]:
    for size, batch in SIZES_AND_BATCHES:
        for mode in ("split", "streaming"):
            for window, role in _ends(mode):
                for name in NAMES:
                    client = {"production": "producer", "consumption": "consumer"}[role]
                    busy = 0.95 if batch == 50 and role == "production" else 0.6
                    for process, us in ((client, 2.0), ("broker", 3 / _speed(name, batch)), ("coordinator", 0.4)):
                        if process == "coordinator" and not name.startswith("zookeeper"):
                            continue
                        yield _axes(size, batch, mode) | _named(name) | {
                            "window": window, "role": role, "process": process, "cpu_us_per_message": us,
                            "cores_busiest": busy if process == client else 0.4, "rss_max_mb": 64.0,
                            "written_bytes_per_message": 40.0, "received_bytes_per_message": 45.0,
                            "sent_bytes_per_message": 20.0, "gc_pause_us_per_message": None,
                            "coordination_cpu_us_per_message": 0.5 if process == "broker" else None,
                        }  # fmt: skip


def _batches(cells: list[Row]) -> Iterator[Row]:
    for cell in cells:
        if cell["metric"] == "rps":
            names = (*_axes(8, 20, "split"), "architecture", "architecture_rank", "role")
            yield {name: cell[name] for name in names} | {"client": cell["batch_size"], "broker": cell["batch_size"]}


def _paper(ratios: list[Row]) -> Iterator[Row]:
    axes = ("message_size", "batch_size", "mode", "role")
    pair = [row for row in ratios if (row["architecture"], row["against"]) == PRIMARY[0]]
    averages = {
        (one["table"], one["architecture"], *(one[name] for name in axes)): one["value"]
        for one in published()
        if (one["metric"], one["try"]) == ("rps", "avg")
    }
    for (table, name_, *place), value in averages.items():
        for own in pair:
            if name_ == "dsbs" and [own[name] for name in axes] == place:
                yield {name: own[name] for name in (*axes, "n", "ratio", "low", "high", "verdict")} | {
                    "table": table, "published": value / averages[table, "zookeeper", *place], "direction": "yes",
                    "hypothesis": "holds", "inside": False,
                }  # fmt: skip


def _load() -> Iterator[Row]:
    for size, batch in ((32, 1), (32, 20)):
        for load in LOADS:
            for name in NAMES:
                busy = load * (1.05 - 0.1 * NAMES.index(name))
                ack = 400 / (1 - busy) + 100
                rate = 40_000 * load * math.sqrt(batch)
                yield _axes(size, batch, "load", f"load={load:.0%}") | _named(name) | {
                    "load": load, "rate": rate, "achieved": rate, "n": BLOCKS, "ack_p50_us": ack,
                    "ack_p99_us": ack * 6, "e2e_p50_us": ack * 1.7, "e2e_p99_us": ack * 9,
                }  # fmt: skip
