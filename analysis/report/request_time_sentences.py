"""A request's time in words: sentences from the numbers of `request_time`, for the report and for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from analysis.findings import CONTROL, Findings
from analysis.measures import request_time
from analysis.report.formats import significant

Rows = Sequence[Mapping[str, Any]]


def sentences(found: Findings) -> Iterable[str]:
    """The split of a request's time, the ratio at other prices, and the parts of a coordination request."""
    rows = request_time.splits(found)
    yield from _shares(found, rows)
    yield from _prices(found, rows)
    yield from _parts(found)


def _shares(found: Findings, rows: Rows) -> Iterable[str]:
    parts = []
    for name in found.architectures:
        own = [100 * row["coordination_us"] / row["request_us"] for row in rows if row["architecture"] == name]
        if own and name != CONTROL:
            parts.append(f"{name} {median(own):.0f} % ({min(own):.0f} to {max(own):.0f} %)")
    if parts:
        yield (
            f"Coordination is what a request takes beyond the time of {CONTROL}. Its share of a request's time, as "
            f"median of the cells and range: {'; '.join(parts)}."
        )
    elif found.architectures and CONTROL not in found.architectures:
        yield (
            f"How much of a request's time is coordination cannot be told: {CONTROL}, which coordinates nothing, is "
            "not in this run, and the waits of requests overlap."
        )


def _prices(found: Findings, rows: Rows) -> Iterable[str]:
    pair = request_time.pair_of(found)
    if pair is None:
        return
    own = [row for row in rows if row["architecture"] == pair[0] and row[request_time.factor_name(1)] is not None]
    if not own:
        return
    texts = [
        significant(median(row[request_time.factor_name(factor)] for row in own)) for factor in request_time.FACTORS
    ]
    factors = ", ".join(f"{factor:g}" for factor in request_time.FACTORS[:-1])
    waits = [row["waiting_at_once"] for row in rows if row["architecture"] == pair[1]]
    known = [wait for wait in waits if wait is not None]
    waiting = f", where {significant(median(known))} requests of {pair[1]} waited at once (median)" if known else ""
    yield (
        f"If a coordination request cost {factors} or {request_time.FACTORS[-1]:g} times what it did, {pair[0]} "
        f"would be {', '.join(texts[:-1])} or {texts[-1]} times as fast as {pair[1]} (median of the cells). The model: "
        f"data path + k x coordination, with as many waits overlapping as here{waiting}."
    )


def _parts(found: Findings) -> Iterable[str]:
    rows = request_time.requests(found)
    for name in found.architectures:
        own = [row for row in rows if row["architecture"] == name]
        if not own:
            continue
        wait, server = (_middle(row[column] for row in own) for column in ("wait_us", "server_us"))
        known = [row for row in own if row["client_us"] is not None]
        client = "is not known"
        share = ""
        if known:
            client = f"is {_middle(row['client_us'] for row in known)} µs"
            parts = [100 * row["client_us"] / ((row["client_us"] + row["server_us"]) or 1) for row in known]
            share = f"; the client takes {median(parts):.0f} % of the processor time of both"
        yield (
            f"A request of a client waited {wait} µs for a coordination request of {name}. The server's processor time "
            f"in it is {server} µs, that of the coordination client in the brokers {client}{share} (medians of the "
            "cells and ranges). The rest is the wire, the brokers' event loops and the queue."
        )


def _middle(values: Iterable[float]) -> str:
    every = sorted(values)
    middle, least, most = (significant(value) for value in (median(every), every[0], every[-1]))
    return middle if least == most else f"{middle} ({least} to {most})"
