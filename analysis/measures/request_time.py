"""Why one architecture is faster, in numbers: of each request's time, how much is coordination, and what it is made of.

The model. A request's time is that of its share of the rate: batch size / rate. What is left of it when coordination
costs nothing is the data path: the time of `static`, which coordinates nothing, in the same cell. The rest is
coordination as it shows in the rate. It is less than what requests waited, because waits overlap when many requests are
in flight, and may be more, because the processor time that coordinating takes is taken from the data path. So where
`static` was not measured a time is not split: waits alone, which overlap, say nothing of it. Were a coordination
request to cost k times as much, a request would take

    data path + k x coordination.

This assumes that as many waits overlap as did in the run, and that the data path stays as fast: good for cheaper
coordination, where the data path is the limit anyway; for dearer coordination an upper bound on what would be lost
where clients could keep more requests in flight, a lower one where the coordinator would be overloaded.

Pure: it arranges and divides what Spark has summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.findings import CONTROL, PAPER_PAIR, Findings, Found

FACTORS = (0.1, 0.5, 1.0, 5.0)
# The role whose rate is a window's: with both at once, a request is produced and consumed when it is consumed.
_ASKED_MIN = 0.5  # coordination requests for a request
_ROLE_OF_WINDOW = {"production": "production", "consumption": "consumption", "both": "consumption"}
_CELL = ("others", "message_size", "batch_size", "mode")
Key = tuple[Any, ...]


def base_of(found: Findings) -> str:
    """What the others are compared with: the paper's control group, or what the experiments name first."""
    names = (*(name for name in found.architectures if name == PAPER_PAIR[1]), *found.architectures)
    return names[0] if names else ""


def pair_of(found: Findings) -> tuple[str, str] | None:
    """Which two architectures a question about one ratio is about: the paper's, or the last against the first."""
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


def _split(found: Findings) -> Iterable[dict[str, Any]]:
    waits = _waits(found)
    times = {
        (*(row[name] for name in _CELL), window, row["architecture"]): (row, row["batch_size"] * 1e6 / row["geometric"])
        for row in found.cells
        for window in _windows(row)
        if row["metric"] == "rps"
    }
    for (*place, name), (row, request_us) in times.items():
        control = times.get((*place, CONTROL))
        if control is None:
            continue
        waited_us = waits.get((*place, name), 0.0) * row["batch_size"]
        data_us = min(request_us, control[1])
        yield {
            **{column: row[column] for column in (*_CELL, "architecture", "architecture_rank")},
            "window": place[-1],
            "request_us": request_us,
            "data_us": data_us,
            "coordination_us": request_us - data_us,
            "waited_us": waited_us,
            "waiting_at_once": waited_us / request_us,
        }


def _windows(row: Found) -> tuple[str, ...]:
    """The windows whose rate this is."""
    if row["mode"] == "streaming":
        return ("both",) if row["role"] == _ROLE_OF_WINDOW["both"] else ()
    return (row["role"],)


def _waits(found: Findings) -> dict[Key, float]:
    """Microseconds that were waited for coordination, of every message."""
    waits: dict[Key, float] = {}
    for row in found.coordination:
        waits[_key(row)] = waits.get(_key(row), 0.0) + row["wait_ms"]  # ms for 1,000 messages
    return waits


def _ratios(base: Found | None, row: Found) -> dict[str, float | None]:
    """How many times the base's rate this architecture's would be, were a coordination request to cost k times."""
    if base is None:
        return {factor_name(factor): None for factor in FACTORS}
    return {factor_name(factor): _time_us(base, factor) / _time_us(row, factor) for factor in FACTORS}


def _time_us(row: Found, factor: float) -> float:
    return float(row["data_us"] + factor * row["coordination_us"])


def requests(found: Findings) -> tuple[Mapping[str, Any], ...]:
    """What a coordination request that somebody waited for took, where a coordinator is asked about every request.

    Where it is asked seldom, what it does unasked outweighs what it does for those who wait.

    `client_us` is processor time of the coordination client in the brokers, `server_us` the coordinator's; the rest of
    the wait is the wire, the brokers' event loops, and standing in line. Both are spent for requests nobody waits for
    too, and beside each other, so the rest is at least what is left.
    """
    used = {(_key(row), row["process"]): row for row in found.resources}
    rows = []
    for key, own in _asked(found).items():
        server, broker = used.get((key, "coordinator")), used.get((key, "broker"))
        if server is None:
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
    for row in found.coordination:
        if row["wait_ms"] > 0 and row["operations"] > 0:
            asked.setdefault(_key(row), []).append(row)
    return asked
