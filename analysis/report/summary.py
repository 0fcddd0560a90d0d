"""The first screen: the question, the names, the answer, the instrument's zero, and what to know before believing it.

The page and the terminal show the same. A sentence holds at most two numbers, and none is a range over unlike cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.findings import PAPER_PAIR, ROLES, Findings, cell_of, size_text
from analysis.measures import rank_correlation
from analysis.report import answer, verdicts
from analysis.report.formats import significant
from analysis.report.naming import WINDOWED_SCHEMA, Name, names

Manifest = Mapping[str, Any]
Facts = tuple[tuple[str, str], ...]
_SAME_ORDER = 0.5  # the rank correlation from which two orders are called alike
_OLDER = (
    "The order was by cluster: two rates that are compared lie minutes apart, and the machine may have changed.",
    "Clients held up to 20,000 messages under way, so ratios at small batches are ratios under that load.",
    "There was no A/A. What two equal architectures differ by is not known, so there is no floor.",
    "The load of other programs was not measured. No window is marked as disturbed.",
    "Streaming was counted from the first message to the last, with one end at work alone in part of each window.",
)


@dataclass(frozen=True, slots=True)
class Zero:
    """What the instrument finds where there is nothing to find."""

    pair: str
    ratio: str
    interval: str
    alarms: str
    alarms_interval: str
    floor: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The first screen's parts, in their order."""

    question: str
    setup: str
    names: tuple[Name, ...]
    facts: Facts
    older: tuple[str, ...]  # what the protocol of an older folder could not know
    lines: tuple[answer.Line, ...]
    where: Facts  # the cells in which the columns that are not pooled were measured
    rates: tuple[str, ...]  # of a run that compares nothing
    zero: Zero | None
    warnings: tuple[str, ...]
    published: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything that is a sentence."""
        return (self.question, self.setup, *self.rates, *self.warnings, *self.published)


def summarise(found: Findings, manifest: Manifest | None = None) -> Summary:
    """Arrange the first screen."""
    called = names(found.architectures, manifest)
    return Summary(
        question=_question(found.architectures),
        setup="Every architecture runs the same brokers, clients and load; they differ in where the metadata is and in "
        "what a commit promises.",
        names=tuple(called.values()),
        facts=tuple(_facts(found, manifest or {})),
        older=_OLDER if _is_older(found) else (),
        lines=answer.lines(found, called),
        where=tuple(_where(found)),
        rates=() if found.pooled else tuple(_rates(found)),
        zero=_zero(found),
        warnings=tuple(_warnings(found)),
        published=tuple(_published(found)),
    )


def _question(architectures: Sequence[str]) -> str:
    if len(architectures) > 1:
        return "What does coordination cost a message broker, and does it cost less without ZooKeeper?"
    return f"One architecture measured: {architectures[0]}" if architectures else "Nothing measured"


def _is_older(found: Findings) -> bool:
    version = found.protocol.get("schema_version", WINDOWED_SCHEMA)
    return isinstance(version, int) and version < WINDOWED_SCHEMA


def _facts(found: Findings, manifest: Manifest) -> Iterable[tuple[str, str]]:
    """The machine, the client, the load and the design, in small."""
    held = {row["setting"]: row["found"] for row in found.equality}
    for title, text in (
        ("Machine", _machine(manifest)),
        ("Client", _client(held, manifest)),
        ("Load", _load(found, held)),
        ("Design", _design(found)),
    ):
        if text:
            yield title, text


def _machine(manifest: Manifest) -> str:
    machine = manifest.get("machine") or {}
    memory = machine.get("memory_bytes")
    return ", ".join(
        str(part)
        for part in (
            f"{machine['cores']} cores" if "cores" in machine else "",
            machine.get("processor", ""),
            f"{memory / (1 << 30):.0f} GiB" if isinstance(memory, int) else "",
            machine.get("system", ""),
        )
        if part
    )


def _client(held: Mapping[str, str], manifest: Manifest) -> str:
    driver = held.get("driver", "")
    library = {"kafka": "confluent-kafka", "grpc": "grpcio"}.get(driver, "")
    version = (manifest.get("versions") or {}).get(library)
    return f"{driver} ({library} {version})" if driver and version else driver


def _load(found: Findings, held: Mapping[str, str]) -> str:
    window_s = found.protocol.get("window_s")
    parts = [
        ("in_flight", "{} requests in flight for each connection"),
        ("fetch_ahead", "{} batches fetched ahead"),
    ]
    told = [words.format(held[key]) for key, words in parts if held.get(key, "not known") != "not known"]
    if isinstance(window_s, int | float):
        told.append(f"windows of {significant(window_s)} s")
    return ", ".join(told)


def _design(found: Findings) -> str:
    measured = [row for row in found.trials if row["kind"] == "measured"]
    spent, budget = (found.protocol.get(key) for key in ("spent_s", "budget_s"))
    parts = [
        _many(len({row["cell"] for row in measured}), "cell"),
        _many(len(found.architectures), "architecture"),
        _many(len({row["try"] for row in measured}), "block"),
        _rounds(found.protocol.get("rounds")),
        f"{spent:,.0f} s of a budget of {budget:,.0f} s" if spent and budget else "",
    ]
    return ", ".join(part for part in parts if part)


def _rounds(rounds: object) -> str:
    """The fewest and the most rounds of a cell in a block."""
    if not isinstance(rounds, Sequence) or not rounds:
        return ""
    ends = sorted({min(rounds), max(rounds)})
    return f"{' to '.join(map(str, ends))} round{'' if ends[-1] == 1 else 's'} in each"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _where(found: Findings) -> Iterable[tuple[str, str]]:
    cell = answer.reference_cell(found)
    if cell is not None:
        yield "requests", f"{size_text(cell[2])}, batch {cell[1]}"
    place = answer.load_cell(found)
    if place is not None:
        yield "latency", f"{size_text(place[0])}, batch {place[1]}"


def _rates(found: Findings) -> Iterable[str]:
    """One architecture alone has nothing to compare with: its own rates."""
    cell = answer.reference_cell(found)
    for name in found.architectures:
        own = {
            row["role"]: row["geometric"]
            for row in found.cells
            if (row["architecture"], row["metric"], cell_of(row)) == (name, "rps", cell)
        }
        parts = [f"{role} {significant(own[role])} messages/s" for role in ROLES if role in own]
        yield f"{name}: {' and '.join(parts)}." if parts else f"{name} has no valid trial, so no rate."
    if len(found.architectures) == 1:
        yield "One architecture alone says nothing about what coordination costs: run a second one to compare."


def _zero(found: Findings) -> Zero | None:
    row = next((row for row in found.zero if row["family"] == "all"), None)
    if row is None:
        return None
    ends = [row["alarm_low"], row["alarm_high"]]
    return Zero(
        pair=f"{row['architecture']} / {row['against']}",
        ratio=significant(row["ratio"]),
        interval=answer.interval_text(row),
        alarms=f"{row['false_alarms']} of {row['comparisons']}",
        alarms_interval="" if None in ends else " to ".join(f"{100 * end:.1f} %" for end in ends),
        floor="" if row["floor"] is None else verdicts.percent(row["floor"]),
    )


def _warnings(found: Findings) -> Iterable[str]:
    """What concerns more than one place of the table."""
    trials = {row["trial_id"]: row for row in found.trials}
    bad = sum(row["verdict"] != "valid" for row in trials.values())
    if bad:
        yield f"{bad} of {len(trials)} trials do not balance or did not finish, and are left out: see the audit."
    differ = [row["setting"] for row in found.equality if row["cells_that_differ"]]
    if differ:
        yield f"Not held equal between architectures: {', '.join(differ)}. Differences may come from there."
    if found.ratios and not found.zero:
        yield "This run has no A/A, so nothing says how small a difference it can see."
    yield from _undecided(found)


def _undecided(found: Findings) -> Iterable[str]:
    """Of each pair that the table shows: the cells in which nothing is decided."""
    floors = verdicts.floors(found)
    for pair in answer.pairs(found):
        rows = [row for row in found.ratios if (row["architecture"], row["against"]) == pair]
        said = [verdicts.of_rate(row, verdicts.floor_of(floors, verdicts.family_of(row))) for row in rows]
        open_ = verdicts.counted(said)["open"]
        if open_:
            yield f"{pair[0]} / {pair[1]}: {open_} of {len(rows)} comparisons of single cells are undecided."


def _published(found: Findings) -> Iterable[str]:
    rows = found.paper_comparison
    if not rows:
        return
    holds = sum(row["hypothesis"] == "holds" for row in rows)
    yield (
        f"The paper's hypothesis, that {PAPER_PAIR[0]} is faster than {PAPER_PAIR[1]}, holds in {holds} of {len(rows)} "
        "published cells measured here."
    )
    orders = [row for row in rank_correlation.orders(found) if row["what"] == rank_correlation.RATIO]
    for row in orders:
        alike = "is the paper's" if row["rho"] >= _SAME_ORDER else "is not the paper's"
        yield (f"The order of the cells by their ratio {alike} in {row['role']}: rank correlation {row['rho']:.2f}.")


def as_text(summary: Summary) -> str:
    """For a terminal: the table of ratios, then one line for each thing to know."""
    lines = list(_text_table(summary)) if summary.lines else list(summary.rates)
    if summary.zero is not None:
        zero = summary.zero
        floor = f"; no claim below {zero.floor}" if zero.floor else ""
        lines.append(
            f"A/A {zero.pair}: {zero.ratio} ({zero.interval or 'no interval'}); false alarms {zero.alarms}{floor}"
        )
    if summary.older:
        lines.append("The records are of an older protocol: the report says what it could not know.")
    return "\n".join([*lines, *summary.warnings, *summary.published])


def _text_table(summary: Summary) -> Iterable[str]:
    rows = [("ratio of rates", *answer.FAMILIES.values())]
    rows += [(" / ".join(line.pair), *(_text_of(one) if one else "-" for one in line.rates)) for line in summary.lines]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _text_of(one: answer.Comparison) -> str:
    interval = f" ({one.interval})" if one.interval else ""
    return f"{one.ratio}{interval} {one.verdict.words}"
