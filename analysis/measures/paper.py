"""The published numbers: their statistics, the comparison with a run, and an audit of the tables themselves. Pure.

Everything is computed from `data/paper_tables.csv`; so are the findings of the audit.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from analysis.findings import PAPER_PAIR, Found
from analysis.statistics.intervals import FASTER, SLOWER

PROPOSAL, BASELINE = PAPER_PAIR
TABLES = Path(__file__).parents[1] / "data" / "paper_tables.csv"
OVERLAP, TWICE = "published tries overlap", "published twice"  # in place of a direction
_KINDS: Mapping[str, Callable[[str], Any]] = {"message_size": int, "batch_size": int, "value": float}
_AXES = ("message_size", "batch_size", "mode", "role")
_OPPOSITE = {FASTER: SLOWER, SLOWER: FASTER}
Row = dict[str, Any]
Key = tuple[Any, ...]


def published() -> tuple[Row, ...]:
    """Every published number, as in the file."""
    with TABLES.open(newline="") as file:
        return tuple({name: _KINDS.get(name, str)(text) for name, text in row.items()} for row in csv.DictReader(file))


def tries(numbers: Iterable[Found]) -> list[Row]:
    """The published rates as windows of a run; the two tables are kept apart as an axis of their own."""
    return [
        {
            **{name: row[name] for name in _AXES},
            "cell": f"{row['table']}/{row['message_size']}/{row['batch_size']}/{row['mode']}",
            "others": row["table"],
            "architecture": row["architecture"],
            "architecture_rank": int(row["architecture"] != BASELINE),
            "try": int(row["try"]),
            "round": 1,
            "rps": row["value"],
        }
        for row in numbers
        if row["try"] != "avg" and row["metric"] == "rps"
    ]


def beside(windows: Iterable[Found], published_tries: Iterable[Found]) -> list[Row]:
    """A run's windows in the published cells, once for each table that has the cell (in `others`)."""
    tables: dict[Key, set[str]] = defaultdict(set)
    for row in published_tries:
        tables[_axes(row)].add(row["others"])
    return [
        {**row, "others": table}
        for row in windows
        if row["others"] == ""
        for table in sorted(tables.get(_axes(row), ()))
    ]


def _axes(row: Found) -> Key:
    return tuple(row[name] for name in _AXES)


def averages(numbers: Iterable[Found]) -> list[Row]:
    """Per table, cell and role published for both architectures, their ratio by the averages in messages/s."""
    found: dict[Key, dict[str, float]] = defaultdict(dict)
    for row in numbers:
        if (row["try"], row["metric"]) == ("avg", "rps"):
            found[row["table"], *_axes(row)][row["architecture"]] = row["value"]
    return [
        dict(zip(("table", *_AXES), key, strict=True)) | {"published": both[PROPOSAL] / both[BASELINE]}
        for key, both in found.items()
        if len(both) == len(PAPER_PAIR)
    ]


def compared(numbers: Sequence[Found], ratios: Iterable[Found]) -> list[Row]:
    """Published and measured ratio, once for each cell and role that a run has of both architectures.

    A direction is told where the published tries do not overlap and the run has decided. The published ratio is inside
    or outside of an interval only where the interval decides something: one that holds 1 may hold everything.
    """
    measured = {_axes(row): row for row in map(_in_the_papers_direction, ratios) if row is not None}
    by_cell: dict[Key, list[Row]] = defaultdict(list)
    for row in averages(numbers):
        by_cell[_axes(row)].append(row)
    disputed = {_axes(row) for row in repeated(numbers)}
    apart = _apart(numbers)
    return [
        _beside_measured(own, measured[key], key in disputed, apart[key])
        for key, own in by_cell.items()
        if key in measured
    ]


def _in_the_papers_direction(row: Found) -> Found | None:
    """The ratio of a plain cell, the proposal's over the baseline's; None of any other pair."""
    if row["others"] or row["ratio"] is None or {row["architecture"], row["against"]} != set(PAPER_PAIR):
        return None
    if row["architecture"] == PROPOSAL:
        return row
    ends = {"low": row["high"], "high": row["low"], "ratio": row["ratio"]}
    turned = {name: None if value is None else 1 / value for name, value in ends.items()}
    return {**row, **turned, "verdict": _OPPOSITE.get(row["verdict"], row["verdict"])}


def _beside_measured(own: Sequence[Found], measured: Found, disputed: bool, apart: bool) -> Row:
    """The tables that publish a cell, as one row; where they do not agree, the first one's ratio."""
    ratio, verdict = own[0]["published"], measured["verdict"]
    decided = verdict in _OPPOSITE
    words = {FASTER: "holds", SLOWER: "the opposite holds"}
    direction = verdict
    if disputed:
        direction = TWICE
    elif not apart:
        direction = OVERLAP
    elif decided:
        direction = "yes" if (ratio > 1) == (measured["ratio"] > 1) else "no"
    return {
        **{name: own[0][name] for name in _AXES},
        "table": ", ".join(row["table"] for row in own),
        "published": ratio,
        **{name: measured[name] for name in ("n", "ratio", "low", "high", "verdict")},
        "direction": direction,
        "inside": measured["low"] <= ratio <= measured["high"] if decided else None,
        "hypothesis": words.get(verdict, f"open: {verdict}"),
    }


def _apart(numbers: Iterable[Found]) -> dict[Key, bool]:
    """Per cell and role, whether the tries of the two architectures do not overlap, in any table."""
    own: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in numbers:
        if row["try"] != "avg" and row["metric"] == "rps":
            own[_axes(row)][row["architecture"]].append(row["value"])
    return {key: not _overlap(list(both.values())) for key, both in own.items()}


def _overlap(ranges: Sequence[Sequence[float]]) -> bool:
    return max(map(min, ranges)) <= min(map(max, ranges))


def repeated(numbers: Iterable[Found]) -> list[Row]:
    """Cells that two tables publish: the tries' factor between the tables, where they are not the same."""
    found: dict[Key, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in numbers:
        if row["metric"] == "rps" and row["try"] != "avg":
            found[row["architecture"], *_axes(row)][row["table"]][row["try"]] = row["value"]
    rows = []
    for key, tables in found.items():
        if len(tables) > 1:
            other, table = sorted(tables)[:2]
            pairs = [(tables[table][number], tables[other][number]) for number in sorted(tables[table])]
            factors = [before / value for value, before in pairs]
            if (min(factors), max(factors)) != (1, 1):
                rows.append({
                    **dict(zip(("architecture", *_AXES), key, strict=True)), "table": table, "other_table": other,
                    "least": min(factors), "most": max(factors), "tries": len(factors),
                    "values": [{"value": value, "other": before} for value, before in pairs],
                })  # fmt: skip
    return rows


def spreads(numbers: Iterable[Found]) -> list[Row]:
    """Per table, cell and role: the tries' range and coefficient of variation in each architecture, in messages/s."""
    groups: dict[Key, list[float]] = defaultdict(list)
    for row in tries(numbers):
        groups[row["cell"], row["role"], row["architecture"]].append(row["rps"])
    return [
        dict(zip(("cell", "role", "architecture"), key, strict=True))
        | {"least": min(own), "most": max(own), "cv": stdev(own) / fmean(own)}
        for key, own in groups.items()
    ]


def arithmetic(numbers: Iterable[Found]) -> Row:
    """How many averages and kilobytes follow from the published tries, and how many do not."""
    values: dict[Key, dict[str, float]] = defaultdict(dict)
    pairs: dict[Key, dict[str, float]] = defaultdict(dict)
    for row in numbers:
        cell = (row["table"], row["architecture"], *_axes(row))
        values[*cell, row["metric"]][row["try"]] = row["value"]
        pairs[*cell, row["try"]][row["metric"]] = row["value"]
    means = [(fmean(v for name, v in own.items() if name != "avg"), own["avg"]) for own in values.values()]
    # The message's size stands third in the key.
    sizes = [(own["rps"] * key[2] / 1000, own["kbps"]) for key, own in pairs.items()]
    return {
        "averages": len(means),
        "averages_off": sum(abs(mean - average) > 1 for mean, average in means),
        "pairs": len(sizes),
        "pairs_off": sum(abs(expected - kbps) > 1 for expected, kbps in sizes),
    }


def audit(numbers: Sequence[Found]) -> tuple[Found, ...]:
    """The faults of the published tables, as rows of finding, where, evidence."""
    twice = repeated(numbers)
    return (
        *_twice_published(twice),
        *_advantage(averages(numbers), twice),
        *_dispersion(spreads(numbers)),
        *_sums(arithmetic(numbers)),
    )


def _twice_published(rows: Iterable[Found]) -> Iterable[Found]:
    for row in sorted(rows, key=lambda row: tuple(row[name] for name in ("architecture", *_AXES))):
        # Rates are printed as whole numbers: half a message/s on either side is rounding.
        slack = max(1 / one["value"] for one in row["values"])
        constant = row["most"] - row["least"] <= 2 * slack
        factor = f"every one of {row['tries']} tries is {row['least']:.2f} times" if constant else (
            f"the {row['tries']} tries are {row['least']:.2f} to {row['most']:.2f} times"
        )  # fmt: skip
        yield {
            "finding": "one cell, two published results",
            "where": f"{row['architecture']}, {row['message_size']} bytes, batch {row['batch_size']}, {row['mode']}, "
            f"{row['role']}",
            "evidence": f"in {row['other_table']} {factor} its value in {row['table']}: "
            + ", ".join(f"{one['other']:,.0f} and {one['value']:,.0f}" for one in row["values"]),
        }


def _advantage(rows: Sequence[Found], twice: Sequence[Found]) -> Iterable[Found]:
    """The advantage by batch size: a cost paid once a request should show most with one message a request."""
    disputed = {tuple(row[name] for name in _AXES) for row in twice}
    ranges: dict[int, tuple[float, float]] = {}
    for batch in sorted({row["batch_size"] for row in rows}):
        every, agreed = (
            sorted(r["published"] for r in rows if r["batch_size"] == batch and (all_ or not _is_in(r, disputed)))
            for all_ in (True, False)
        )
        ranges[batch] = (agreed[0], agreed[-1])
        without = f" ({agreed[0]:.2f} to {agreed[-1]:.2f} without the cell published twice)" if agreed != every else ""
        yield {
            "finding": f"advantage of {PROPOSAL} at batch size {batch}",
            "where": f"{PROPOSAL} / {BASELINE}, every cell of that batch size, messages/s",
            "evidence": f"{every[0]:.2f} to {every[-1]:.2f} times{without}",
        }
    greatest = max(ranges, key=lambda batch: ranges[batch][0])
    if greatest != min(ranges):
        yield {
            "finding": "the advantage is not where its cause should show most",
            "where": f"batch size {greatest}, not {min(ranges)}",
            "evidence": f"a cost paid once a request weighs most at {min(ranges)} message a request; there it is "
            f"at most {ranges[min(ranges)][1]:.2f}, at {greatest} at least {ranges[greatest][0]:.2f}",
        }


def _is_in(row: Found, cells: set[tuple[Any, ...]]) -> bool:
    return tuple(row[name] for name in _AXES) in cells


def _dispersion(rows: Sequence[Found]) -> Iterable[Found]:
    cvs = [row["cv"] for row in rows]
    yield {
        "finding": "spread of the tries, which the paper does not give",
        "where": f"{len(cvs)} cells, messages/s",
        "evidence": "coefficient of variation {:.1f} % to {:.1f} %, median {:.1f} %".format(
            *(100 * of(cvs) for of in (min, max, median))
        ),
    }
    ranges: dict[tuple[Any, ...], list[Found]] = {}
    for row in rows:
        ranges.setdefault((row["cell"], row["role"]), []).append(row)
    overlapping = [key for key, both in ranges.items() if _overlap([(r["least"], r["most"]) for r in both])]
    yield {
        "finding": "ranges of the two architectures overlap",
        "where": f"{len(overlapping)} of {len(ranges)} cells",
        "evidence": "the slowest try of the faster architecture is no faster than the fastest of the slower: "
        + ", ".join(f"{cell} {role}" for cell, role in sorted(overlapping)),
    }


def _sums(row: Found) -> Iterable[Found]:
    yield {
        "finding": "averages and kilobytes follow from the tries" if not row["averages_off"] + row["pairs_off"]
        else "averages or kilobytes do not follow from the tries",
        "where": f"{row['averages']} averages, {row['pairs']} pairs of messages/s and KB/s",
        "evidence": f"{row['averages_off']} averages and {row['pairs_off']} pairs are off by more than 1",
    }  # fmt: skip
