"""From sums by window to rates: one row a window and role, and one a trial and role, and which of them count. Pure.

The rates come from the sums of request rows alone; the counts of the trial's own row are only compared with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from analysis.findings import ROLES, Found
from analysis.measures.leading import Slice, leading

SHORT_WINDOW_MS = 250  # of a whole window
NOISY_SPREAD = 1.15  # of the two calibration trials of a block: records of before have such trials
FOREIGN_MAX = 0.05  # share of the machine
UNSETTLED_FROM = 0.3  # share of a window that its leading part takes
MESSAGES_MIN, BATCHES_MIN = 1_000, 50  # of a timed window
AXES = ("message_size", "batch_size", "mode")
CELL = ("cell", "others", *AXES)
ARCHITECTURE = ("architecture", "architecture_rank")
# In place of a slice's number: done before the window opened, after it closed.
BEFORE, AFTER = -1, -2
MEASURED = "measured"
CALIBRATION = "calibration"
_COUNTS = ("sent", "acknowledged", "stored", "consumed")
_ROLES_OF = {"production": ("production",), "consumption": ("consumption",), "both": ROLES}
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a window that its rate is of, and what was done in it."""

    messages: int
    first_ns: int
    last_ns: int
    dropped: float = 0.0  # share of the window that its leading part took

    @property
    def seconds(self) -> float:
        return (self.last_ns - self.first_ns) / 1e9


@dataclass(frozen=True, slots=True)
class Sums:
    """The request rows of one role in one window, or in several."""

    messages: int
    requests: int
    failed: int
    backwards: int
    first_ns: int
    last_ns: int | None  # None where nothing was done
    slices: Mapping[int, Slice]  # of a timed window, BEFORE and AFTER among them


Key = tuple[str, str, int]  # trial, role, number


def gathered(rows: Iterable[Found]) -> dict[Key, Sums]:
    """The sums of each trial, role and window, from Spark's rows."""
    by_window: dict[Key, list[Found]] = defaultdict(list)
    for row in rows:
        by_window[row["trial_id"], row["role"], row["number"]].append(row)
    return {key: _sums(own) for key, own in by_window.items()}


def _sums(rows: Sequence[Found]) -> Sums:
    ends = [row["last_ns"] for row in rows if row["last_ns"] is not None]
    return Sums(
        messages=sum(row["messages"] for row in rows),
        requests=sum(row["requests"] for row in rows),
        failed=sum(row["failed"] for row in rows),
        backwards=sum(row["backwards"] for row in rows),
        first_ns=min(row["first_ns"] for row in rows),
        last_ns=max(ends, default=None),
        slices={
            row["slice"]: Slice(row["messages"], row["last_ns"])
            for row in sorted(rows, key=lambda row: int(row["slice"]))
            if row["last_ns"] is not None
        },
    )


def _all(sums: Sequence[Sums]) -> Sums:
    """Of several windows together."""
    ends = [one.last_ns for one in sums if one.last_ns is not None]
    return Sums(
        sum(one.messages for one in sums), sum(one.requests for one in sums), sum(one.failed for one in sums),
        sum(one.backwards for one in sums), min(one.first_ns for one in sums), max(ends, default=None), {},
    )  # fmt: skip


def others(cell: str) -> str:
    """The axes of a cell besides message size, batch size and mode: "brokers=5", or nothing."""
    return ",".join(part for part in cell.split(",") if "=" in part and part.partition("=")[0] not in AXES)


def stretch(window: Found, sums: Sums | None) -> Stretch | None:
    """What a window's rate is of: all of a whole window, and of a timed one from row's end to row's end."""
    if sums is None or sums.last_ns is None:
        return None
    if window["opened_ns"] is None:
        return Stretch(sums.messages, sums.first_ns, sums.last_ns)
    inside = [one for number, one in sums.slices.items() if number not in (BEFORE, AFTER)]
    if not inside:
        return None
    start_ns = sums.slices[BEFORE].end_ns if BEFORE in sums.slices else window["opened_ns"]
    skipped = leading(inside, start_ns, sums.messages / sums.requests)
    from_ns = inside[skipped - 1].end_ns if skipped else start_ns
    last_ns = inside[-1].end_ns
    dropped = (from_ns - start_ns) / (last_ns - start_ns)
    return Stretch(sum(one.messages for one in inside[skipped:]), from_ns, last_ns, dropped)


def windows(trials: Iterable[Found], sums: Mapping[Key, Sums]) -> list[Row]:
    """One row a window and role, with what became of it."""
    rows = []
    for trial in trials:
        verdict, reason = judged(trial, sums)
        used = _used(trial)
        for window in trial["windows"] or ():
            for role in _ROLES_OF[window["window"]]:
                found = stretch(window, sums.get((trial["trial_id"], role, window["number"])))
                own = _window_row(trial, window, role, found) | {"verdict": verdict, "reason": reason}
                own["attempts"], used_number = used[window["round"], window["window"]]
                own["used"] = window["number"] == used_number
                rows.append(own | _rate(own, found))
    return rows


def _window_row(trial: Found, window: Found, role: str, found: Stretch | None) -> Row:
    asked_s = 0.0 if window["opened_ns"] is None else (window["closed_ns"] - window["opened_ns"]) / 1e9
    foreign = _foreign(window)
    few_below = max(MESSAGES_MIN, BATCHES_MIN * trial["batch_size"])
    return {
        **named(trial),
        **{name: trial[name] for name in ("trial_id", "kind", "system", "try")},
        **{name: window[name] for name in ("round", "place", "number", "window")},
        "role": role,
        "messages": found.messages if found else 0,
        "window_s": found.seconds if found else asked_s,
        "foreign": foreign,
        "disturbed": foreign is not None and foreign > FOREIGN_MAX,
        "unsettled": found is not None and found.dropped > UNSETTLED_FROM,
        "few": window["opened_ns"] is not None and (found.messages if found else 0) < few_below,
    }


def _rate(row: Found, found: Stretch | None) -> Row:
    counts = row["verdict"] == "valid" and row["used"] and not row["few"] and found is not None
    rps = found.messages / found.seconds if counts and found is not None else None
    return {"rps": rps, "kbps": None if rps is None else rps * row["message_size"] / 1000}


def named(trial: Found) -> Row:
    """Cell and architecture."""
    return {name: trial[name] for name in ("cell", *AXES, *ARCHITECTURE)} | {"others": others(trial["cell"])}


def _foreign(window: Found) -> float | None:
    if window["foreign_cores"] is None or not window["cores"]:
        return None
    return float(window["foreign_cores"] / window["cores"])


def _used(trial: Found) -> dict[tuple[int, str], tuple[int, int]]:
    """For each round and window: how many attempts there were, and the number of the least disturbed one."""
    attempts: dict[tuple[int, str], list[Found]] = defaultdict(list)
    for window in trial["windows"] or ():
        attempts[window["round"], window["window"]].append(window)
    return {key: (len(own), min(own, key=_disturbance)["number"]) for key, own in attempts.items()}


def _disturbance(window: Found) -> tuple[bool, float, int]:
    foreign = window["foreign_cores"]
    return foreign is None, foreign or 0.0, window["number"]


def roles(trial: Found) -> tuple[str, ...]:
    """The roles that a trial has."""
    return tuple(role for role, count in zip(ROLES, (trial["producers"], trial["consumers"]), strict=True) if count)


def judged(trial: Found, sums: Mapping[Key, Sums]) -> tuple[str, str]:
    """Verdict and reason: the runner's own verdict comes first, then what its request rows say."""
    faults = [fault for role in roles(trial) if (fault := _fault(trial, role, sums))]
    if not faults:
        return "valid", ""
    return "failed" if trial["verdict"] == "failed" else "invalid", max(faults)


def _fault(trial: Found, role: str, sums: Mapping[Key, Sums]) -> str:
    """Why this role of the trial cannot be rated, or nothing."""
    if trial["verdict"] != "valid":
        return str(trial["reason"] or trial["verdict"])
    total = _total(trial, role, sums)
    if total is None:
        return f"no request rows of {role}"
    if total.backwards:
        return f"{total.backwards} request rows end before they begin"
    if not total.messages:
        return f"no message in {role}"
    expected = trial["acknowledged"] if role == "production" else trial["consumed"]
    if any(one.seconds <= 0 for one in _whole(trial, role, sums)):
        return f"the window of {role} has no length"
    if total.messages != expected:
        return f"the request rows hold {total.messages} messages, the trial says {expected}"
    return ""


def _whole(trial: Found, role: str, sums: Mapping[Key, Sums]) -> Iterator[Stretch]:
    for window in trial["windows"] or ():
        own = sums.get((trial["trial_id"], role, window["number"]))
        if own is not None and window["opened_ns"] is None and (found := stretch(window, own)):
            yield found


def _total(trial: Found, role: str, sums: Mapping[Key, Sums]) -> Sums | None:
    """All that a role did in a trial, outside of windows too."""
    numbers = {0, *(window["number"] for window in trial["windows"] or ())}
    own = [one for number in numbers if (one := sums.get((trial["trial_id"], role, number)))]
    return _all(own) if own else None


def of_valid(rows: Iterable[Found]) -> list[Found]:
    """The used windows of valid measured trials: what statistics are of."""
    return [row for row in rows if (row["kind"], row["verdict"], row["used"]) == (MEASURED, "valid", True)]


def by_trial(trials: Iterable[Found], sums: Mapping[Key, Sums], rated: Iterable[Found]) -> list[Row]:
    """One row a trial and role: the audit's counts, and the mean of the rates of its used windows."""
    own_windows: dict[tuple[str, str], list[Found]] = defaultdict(list)
    for row in rated:
        if row["used"]:
            own_windows[row["trial_id"], row["role"]].append(row)
    rows = [
        _trial_row(trial, role, sums, own_windows[trial["trial_id"], role])
        for trial in trials
        for role in roles(trial)
    ]  # fmt: skip
    _mark_blocks(rows)
    return rows


def _trial_row(trial: Found, role: str, sums: Mapping[Key, Sums], used: Sequence[Found]) -> Row:
    verdict, reason = judged(trial, sums)
    total = _total(trial, role, sums)
    counted = [row["rps"] for row in used if row["rps"] is not None]
    rps = fmean(counted) if counted else None
    window_s = sum(row["window_s"] for row in used) if used and total else None
    whole = any(window["opened_ns"] is None for window in trial["windows"] or ())
    return {
        **named(trial),
        **{name: trial[name] for name in ("trial_id", "kind", "system", "try", "position", *_COUNTS)},
        "role": role,
        "verdict": verdict,
        "reason": reason,
        "windows": len(used),
        "first_ns": total and total.first_ns,
        "last_ns": total and total.last_ns,
        "messages_done": total and total.messages,
        "requests_done": total and total.requests,
        "requests_failed": total and total.failed,
        "window_s": window_s,
        "rps": rps,
        "kbps": None if rps is None else rps * trial["message_size"] / 1000,
        "short_window": whole and window_s is not None and window_s * 1000 < SHORT_WINDOW_MS,
    }


def _mark_blocks(rows: Sequence[Row]) -> None:
    """Say how far the calibration trials of each block differ, where there are two: records of before have them."""
    spreads: dict[tuple[int, str], float] = {}
    for block in {row["try"] for row in rows}:
        for role in ROLES:
            rates = [
                row["rps"]
                for row in rows
                if (row["try"], row["role"], row["kind"]) == (block, role, CALIBRATION) and row["rps"]
            ]
            if len(rates) > 1:
                spreads[block, role] = max(rates) / min(rates)
    for row in rows:
        own = [spreads[row["try"], role] for role in ROLES if (row["try"], role) in spreads]
        row["spread"] = spreads.get((row["try"], row["role"]))
        row["noisy"] = max(own) > NOISY_SPREAD if own else None
