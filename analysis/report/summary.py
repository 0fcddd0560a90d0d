"""The answer in plain words: sentences made from findings, for the top of the report and for the terminal.

Only what the statistics support is said: a difference is named when its interval excludes none, else left open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from analysis.findings import CONTROL, PAPER_PAIR, ROLES, WINDOWS, Findings, Found
from analysis.measures.saturation import BUSY_CORES, busiest
from analysis.report.formats import significant
from analysis.report.request_time_sentences import reasons
from analysis.report.tables import taxes

_NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """`answer`: who is faster, by how much, how sure. `why`: what it cost. `trust`: what to know before believing."""

    answer: tuple[str, ...]
    why: tuple[str, ...]
    hypothesis: tuple[str, ...]
    trust: tuple[str, ...]


def summarise(found: Findings) -> Summary:
    return Summary(
        answer=tuple([*_pairs(found), *_taxes(found)] or _rates(found)),
        why=(*reasons(found), *_coordination(found), *_limits(found)),
        hypothesis=tuple(_hypothesis(found)),
        trust=(*_audit(found), *_blocks(found), *_windows(found), *_equality(found), *_chance(found)),
    )


def _pairs(found: Findings) -> Iterable[str]:
    """Each pair in one sentence, the paper's own pair first."""
    pairs: dict[tuple[str, str], list[Found]] = {}
    for row in found.ratios:
        pairs.setdefault((row["architecture"], row["against"]), []).append(row)
    place = found.architectures.index
    for pair in sorted(pairs, key=lambda pair: (pair != PAPER_PAIR, place(pair[1]), place(pair[0]))):
        if pair[1] != CONTROL:
            yield _pair(pair, pairs[pair])


def _pair(pair: tuple[str, str], rows: Sequence[Found]) -> str:
    """dsbs is faster than zookeeper in 28 of 28 comparisons (1.2 to 4.0 times its rate), slower in none, ..."""
    name, against = pair
    by_verdict = {verdict: [r for r in rows if r["verdict"] == verdict] for verdict in ("faster", "slower")}
    parts: list[str] = []
    for verdict, own in by_verdict.items():
        times = f" ({_range(row['ratio'] for row in own)} times its rate)" if own else ""
        than = f"{verdict} than {against}" if verdict == "faster" else verdict
        parts.append(f"{than} in {len(own) or 'none'}{'' if parts else f' of {len(rows)} comparisons'}{times}")
    open_ = len(rows) - sum(map(len, by_verdict.values()))
    if open_ == len(rows):
        once = all(row["verdict"] == "one try" for row in rows)
        why = "with one try of each there is no interval" if once else "every interval holds the ratio 1"
        return f"{name} and {against} cannot be told apart in any of {open_} comparisons: {why}."
    rest = f"; in {open_} the difference cannot be told from chance" if open_ else ""
    return f"{name} is {', '.join(parts)}{rest}."


def _range(values: Iterable[float], suffix: str = "") -> str:
    every = sorted(values)
    texts = [f"{significant(value)}{suffix}" for value in (every[0], every[-1])]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"


def _taxes(found: Findings) -> Iterable[str]:
    """What coordination takes from the rate, by architecture."""
    rows = list(taxes(found))
    parts = []
    for name in found.architectures:
        own = sorted(row["tax"] * 100 for row in rows if row["architecture"] == name)
        if own:
            middle, least, most = (f"{round(value) + 0:d}" for value in (median(own), own[0], own[-1]))
            parts.append(f"{name} {middle} % ({least} to {most} %)")
    if parts:
        yield (
            f"Against {CONTROL}, which coordinates nothing, coordination takes from the rate (median of the cells, "
            f"and range): {'; '.join(parts)}."
        )


def _rates(found: Findings) -> Iterable[str]:
    """With one architecture there is nothing to compare: its own rates, and how far they scatter."""
    for name in found.architectures:
        rows = [row for row in found.cells if row["architecture"] == name and row["metric"] == "rps"]
        parts = []
        for role in ROLES:
            own = [row["mean"] for row in rows if row["role"] == role]
            if own:
                parts.append(f"{role} {_range(own)} messages/s")
        if not parts:
            yield f"{name} has no valid trial, so no rate."
            continue
        yield f"{name}: {', '.join(parts)} over {len({row['cell'] for row in rows})} cells."
        spread = [row["cv"] for row in rows if row["cv"] is not None]
        if spread:
            yield (
                "Tries of one cell differ by a coefficient of variation of "
                f"{median(spread) * 100:.1f} % (median), at most {max(spread) * 100:.1f} %."
            )
        else:
            yield "There is one try of each cell, so nothing can be said of the spread."
    if len(found.architectures) == 1:
        yield "One architecture alone says nothing of what coordination costs: run a second one to compare."


def _coordination(found: Findings) -> Iterable[str]:
    """How much the brokers coordinated for 1,000 messages, and how long requests waited for it."""
    for name in found.architectures:
        sums: dict[tuple[str, str], list[float]] = {}
        operations: set[str] = set()
        for row in found.coordination:
            if row["architecture"] == name:
                entry = sums.setdefault((row["cell"], row["window"]), [0.0, 0.0])
                entry[0] += row["operations"]
                entry[1] += row["wait_ms"]
                if row["operations"]:
                    operations.add(row["operation"])
        if operations:
            counts, waits = zip(*sums.values(), strict=True)
            yield (
                f"{name} made {_range(counts)} coordination operations ({', '.join(sorted(operations))}) for 1,000 "
                f"messages, and requests waited {_range(waits)} ms for them."
            )
        elif found.coordination:
            own = [wait for _, wait in sums.values()]
            alone = f"; requests waited {_range(own)} ms for writes of its own" if own else ""
            yield f"{name} made no coordination operation in the timed windows{alone}."


def _limits(found: Findings) -> Iterable[str]:
    """Which process was busy with a whole core: the rate is then its, whatever the architecture does."""
    for window in WINDOWS:
        parts = []
        for name in found.architectures:
            most = busiest(found, name, window)
            full = [row["process"] for row in most if row["cores_busiest"] >= BUSY_CORES]
            if full:
                what = " or ".join(sorted(set(full)))
                parts.append(f"the {what} of {name} in {len(full)} of {len(most)} cells")
        if parts:
            where = "streaming" if window == "both" else window
            yield (
                f"In {where} one process was busy with {BUSY_CORES * 100:.0f} % or more of a core, so that it, and "
                f"not coordination, is likely what limits the rate: {'; '.join(parts)}."
            )


def _hypothesis(found: Findings) -> Iterable[str]:
    rows = found.paper_comparison
    if not rows:
        return
    verdicts = [row["hypothesis"] for row in rows]
    same = [row["direction"] for row in rows]
    yield (
        f"The paper's hypothesis, that {PAPER_PAIR[0]} gives more throughput than {PAPER_PAIR[1]}, holds in "
        f"{verdicts.count('holds')} of {len(rows)} published cells measured here, the opposite holds in "
        f"{verdicts.count('the opposite holds')}, and it stays open in {sum(v.startswith('open') for v in verdicts)}."
    )
    inside = sum(bool(row["inside"]) for row in rows)
    yield (
        f"The published ratio is {_range(row['published'] for row in rows)}, the measured one "
        f"{_range(row['ratio'] for row in rows)}; of the cells decided here, {same.count('yes')} go the paper's way "
        f"and {same.count('no')} the other; {inside} published ratios lie inside the measured interval."
    )


def _audit(found: Findings) -> Iterable[str]:
    trials = {row["trial_id"]: row for row in found.trials}
    bad = [row for row in trials.values() if row["verdict"] != "valid"]
    good = len(trials) - len(bad)
    yield f"{good} of {len(trials)} trials balance: sent = acknowledged = stored, and consumed as far as was asked" + (
        "." if not bad else f"; the other {len(bad)} leave the rates ({_first(bad)})."
    )


def _first(bad: Sequence[Found]) -> str:
    texts = [f"{row['trial_id']}: {row['reason']}" for row in bad[:_NAMED_MAX]]
    return "; ".join(texts) + ("; and more, in the audit" if len(bad) > _NAMED_MAX else "")


def _blocks(found: Findings) -> Iterable[str]:
    noisy = {row["try"]: row["noisy"] for row in found.trials}
    flagged = [str(number) for number, is_so in sorted(noisy.items()) if is_so]
    unknown = [str(number) for number, is_so in sorted(noisy.items()) if is_so is None]
    if flagged:
        yield f"Noisy: the calibration trials of block {', '.join(flagged)} differ by more than 15 %."
    if unknown:
        yield f"Block {', '.join(unknown)} lacks two valid calibration trials, so its noise is not known."
    if noisy and not flagged and not unknown:
        yield f"In all {len(noisy)} blocks the calibration trials agree within 15 %."


def _windows(found: Findings) -> Iterable[str]:
    lengths = [row["window_s"] for row in found.trials if row["kind"] == "measured" and row["verdict"] == "valid"]
    short = sum(bool(row["short_window"]) for row in found.trials if row["verdict"] == "valid")
    if lengths:
        yield f"Timed windows last {_range(lengths)} s (median {significant(median(lengths))} s)" + (
            f"; {short} of them shorter than 250 ms, which say little." if short else "."
        )


def _equality(found: Findings) -> Iterable[str]:
    differ = [row["setting"] for row in found.equality if row["cells_that_differ"]]
    if differ:
        yield f"Not held equal between architectures: {', '.join(differ)}. Differences may come from there."
    elif len(found.architectures) > 1:
        yield "Every setting but the architecture was the same in every cell."


def _chance(found: Findings) -> Iterable[str]:
    tried = sum(row["n"] > 1 for row in found.ratios)
    if tried:
        yield (
            f"Of {tried} comparisons at 95 %, about {max(1, round(tried / 20))} would be called different by "
            "chance alone, were there no difference anywhere: believe patterns over single cells."
        )


def as_text(summary: Summary) -> str:
    """For a terminal: one sentence a line."""
    return "\n".join([*summary.answer, *summary.why, *summary.hypothesis, *summary.trust])
