"""How a run measured, in a few facts: from its records, and from its manifest where only that tells. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from analysis.findings import Found
from analysis.measures.rates import MEASURED
from analysis.statistics.intervals import PRECISION

Manifest = Mapping[str, Any]


def precision(manifest: Manifest) -> float:
    """How far an interval may reach from its ratio before a run stops: 0.1 is up to 1.1 times."""
    return float(_part(manifest, "effort").get("precision") or PRECISION)


def protocol(
    trials: Iterable[Found], windows: Sequence[Found], primary: Sequence[tuple[str, str]], manifest: Manifest
) -> dict[str, Any]:
    """The facts; None where they are not known."""
    measured = [trial for trial in trials if trial["kind"] == MEASURED]
    used = [row for row in windows if row["kind"] == MEASURED and row["used"]]
    effort, length = _part(manifest, "effort"), _part(manifest, "length")
    spent = _part(manifest, "spent")
    return {
        "schema_version": max((trial["schema_version"] for trial in measured), default=None),
        "primary": [list(names) for names in primary],
        "window_s": _window_s(measured),
        "rounds": _rounds(used),
        "blocks": len({trial["try"] for trial in measured}),
        "in_flight": _values(measured, "in_flight"),
        "fetch_ahead": _values(measured, "fetch_ahead"),
        "cores": max((w["cores"] for t in measured for w in t["windows"] or () if w["cores"]), default=None),
        "windows": _count(used),
        **{mark: _count(row for row in used if row[mark]) for mark in ("disturbed", "unsettled", "few")},
        "unknown": _count(row for row in used if row["foreign"] is None),
        "precision": precision(manifest) if manifest else None,
        "budget_s": effort.get("budget_s"),
        "duration_s": length.get("duration_s"),
        "spent_s": sum(spent.values()) if spent else None,
    }


def _part(manifest: Manifest, name: str) -> Manifest:
    found = manifest.get(name)
    return found if isinstance(found, Mapping) else {}


def _count(rows: Iterable[Found]) -> int:
    """How many windows: one of both ends has two rows, and is one."""
    return len({(row["trial_id"], row["number"], row["window"]) for row in rows})


def _values(trials: Iterable[Found], name: str) -> list[int]:
    return sorted({trial[name] for trial in trials if trial[name] is not None})


def _window_s(trials: Iterable[Found]) -> float | None:
    """The length that timed windows have; None where windows are whole."""
    lengths = [
        (window["closed_ns"] - window["opened_ns"]) / 1e9
        for trial in trials
        for window in trial["windows"] or ()
        if window["opened_ns"] is not None
    ]
    return median(lengths) if lengths else None


def _rounds(used: Iterable[Found]) -> list[int]:
    """The fewest and the most rounds that a cell has in a block."""
    windows = {(row["trial_id"], row["window"], row["number"]) for row in used}
    rounds = Counter((trial, window) for trial, window, _ in windows).values()
    return [min(rounds), max(rounds)] if rounds else []
