"""Why one architecture is faster, in numbers: the share of coordination in a request's time, and its parts.

The model. A request takes batch size / rate. The data path is the time of `static`, which coordinates nothing, in the
same cell. The rest is coordination as it shows in the rate. It is less than the sum of the waits, because waits overlap
when many requests are in flight, and may be more, because coordination takes processor time from the data path. So
without `static` a time is not split: waits that overlap do not tell. Another system than that of `static` is not split
either: it has another data path. If a coordination request cost k times as much, a request would take

    data path + k x coordination.

This assumes that as many waits overlap as did in the run, and that the data path stays as fast. It is good for cheaper
coordination, where the data path is the limit anyway. For dearer coordination it is an upper bound on the loss where
clients could keep more requests in flight, and a lower one where the coordinator would be overloaded.

Pure: it arranges and divides findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.findings import CONTROL, PAPER_PAIR, Findings, Found

FACTORS = (0.1, 0.5, 1.0, 5.0)
_ASKED_MIN = 0.5  # coordination requests for a request
# The role whose rate and costs are a window's: with both at once, a request is done when it is consumed. Rate and costs
# must be of one role, or their product would not be what happened in a second.
_ROLE_OF_WINDOW = {"production": "production", "consumption": "consumption", "both": "consumption"}
_CELL = ("others", "message_size", "batch_size", "mode")
Key = tuple[Any, ...]


def base_of(found: Findings) -> str:
    """The base of the ratios: the paper's baseline, or the architecture that the experiments name first."""
    names = (*(name for name in found.architectures if name == PAPER_PAIR[1]), *found.architectures)
    return names[0] if names else ""


def pair_of(found: Findings) -> tuple[str, str] | None:
    """The two architectures of a single ratio: the paper's, or the last against the first."""
    names = [name for name in found.architectures if name != CONTROL] or list(found.architectures)
    if set(PAPER_PAIR) <= set(names):
        return PAPER_PAIR
    return (names[-1], names[0]) if len(names) > 1 else None


def splits(found: Findings) -> tuple[Mapping[str, Any], ...]:
    """Per cell, window and architecture: a request's time (µs), its two parts, and the ratio at each factor."""
    rows = {_key(row): row for row in _split(found)}
    return tuple({**row, **_ratios(rows.get((*_place(row), base_of(found))), row)} for row in rows.values())


def factor_name(factor: float) -> str:
    return f"ratio_at_{factor:g}"


def _place(row: Found) -> Key:
    return (*(row[name] for name in _CELL), row["window"])


def _key(row: Found) -> Key:
    return (*_place(row), row["architecture"])


def _of_the_rate(costs: Iterable[Found]) -> Iterable[Found]:
    """The costs of a message of that end whose rate is the window's."""
    return (row for row in costs if row["role"] == _ROLE_OF_WINDOW[row["window"]])


def _split(found: Findings) -> Iterable[dict[str, Any]]:
    waits, beside_control, counting = _waits(found), found.beside_control, found.counting
    times = {
        (*(row[name] for name in _CELL), window, row["architecture"]): (row, row["batch_size"] * 1e6 / row["geometric"])
        for row in found.cells
        for window in _windows(row)
        if row["metric"] == "rps"
    }
    for (*place, name), (row, request_us) in times.items():
        control = times.get((*place, CONTROL))
        if control is None or name not in beside_control:
            continue
        # No row is no wait where the brokers count, and unknown where they do not.
        waited = waits.get((*place, name), 0.0 if name in counting else None)
        waited_us = None if waited is None else waited * row["batch_size"]
        data_us = min(request_us, control[1])
        yield {
            **{column: row[column] for column in (*_CELL, "architecture", "architecture_rank")},
            "window": place[-1],
            "request_us": request_us,
            "data_us": data_us,
            "coordination_us": request_us - data_us,
            "waited_us": waited_us,
            "waiting_at_once": None if waited_us is None else waited_us / request_us,
        }


def _windows(row: Found) -> tuple[str, ...]:
    """The windows whose rate this is; at a fixed load a rate says nothing about a request's time."""
    if row["mode"] == "streaming":
        return ("both",) if row["role"] == _ROLE_OF_WINDOW["both"] else ()
    return (row["role"],) if row["mode"] == "split" else ()


def _waits(found: Findings) -> dict[Key, float | None]:
    """Microseconds a message that requests waited for coordination; None where that was not counted."""
    waits: dict[Key, float | None] = {}
    for row in _of_the_rate(found.coordination):
        before = waits.setdefault(_key(row), None)
        if row["wait_ms"] is not None:
            waits[_key(row)] = (before or 0.0) + row["wait_ms"]  # ms for 1,000 messages
    return waits


def _ratios(base: Found | None, row: Found) -> dict[str, float | None]:
    """This architecture's rate over the base's, if a coordination request cost k times as much."""
    if base is None:
        return {factor_name(factor): None for factor in FACTORS}
    return {factor_name(factor): _time_us(base, factor) / _time_us(row, factor) for factor in FACTORS}


def _time_us(row: Found, factor: float) -> float:
    return float(row["data_us"] + factor * row["coordination_us"])


def requests(found: Findings) -> tuple[Mapping[str, Any], ...]:
    """The parts of a coordination request that a client's request waited for, where nearly every request asks.

    A coordinator that is seldom asked works mostly unasked, so its time divided by its requests would say nothing.

    `client_us` is processor time of the coordination client in the brokers, `server_us` the coordinator's; the rest of
    the wait is the wire, the brokers' event loops, and the queue. Both processor times include requests without a wait,
    and may overlap, so the true rest is at least this.
    """
    used = {(_key(row), row["process"]): row for row in _of_the_rate(found.resources)}
    rows = []
    for key, own in _asked(found).items():
        server, broker = used.get((key, "coordinator")), used.get((key, "broker"))
        if server is None or server["cpu_us_per_message"] is None:
            continue
        operations = sum(row["operations"] for row in own) / 1000  # of a message
        if operations * own[0]["batch_size"] < _ASKED_MIN:
            continue
        wait_us = sum(row["wait_ms"] for row in own) / 1000 / operations * 1000
        server_us = server["cpu_us_per_message"] / operations
        spent = broker["coordination_cpu_us_per_message"] if broker else None
        client_us = None if spent is None else spent / operations
        rows.append({
            **{name: own[0][name] for name in (*_CELL, "window", "architecture", "architecture_rank")},
            "operations": operations * 1000,
            "wait_us": wait_us,
            "client_us": client_us,
            "server_us": server_us,
            "rest_us": max(0.0, wait_us - server_us - (client_us or 0.0)),
        })  # fmt: skip
    return tuple(rows)


def _asked(found: Findings) -> dict[Key, list[Found]]:
    """The operations that requests waited for, by cell, window and architecture."""
    asked: dict[Key, list[Found]] = {}
    for row in _of_the_rate(found.coordination):
        if row["wait_ms"] and row["operations"]:
            asked.setdefault(_key(row), []).append(row)
    return asked
