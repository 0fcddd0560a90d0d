"""The tables that a reader checks before believing the others: every trial, what was held equal, and the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.findings import PAPER_PAIR, Findings
from analysis.measures import rank_correlation
from analysis.measures.explain import explain
from analysis.report.columns import AGAINST, ARCHITECTURE, BATCH, BLOCK, CELL, MODE, OTHERS, ROLE, SIZE
from analysis.report.formats import Column, Row, Table

_SWEPT_AT = 32  # bytes


def paper_comparison(found: Findings) -> Table:
    """The paper's ratios beside those of this run."""
    return Table(
        name="paper_comparison",
        title="The paper's ratios and ours",
        note="dsbs against zookeeper, messages/s. Published: ratio of the published averages. Measured: ratio of "
        "geometric means with its 95 % interval. The hypothesis is that dsbs is faster.",
        columns=(
            Column("table", "Published in"),
            SIZE,
            BATCH,
            MODE,
            ROLE,
            Column("published", "Published", "number"),
            Column("ratio", "Measured", "number"),
            Column("low", "from", "number"),
            Column("high", "to", "number"),
            Column("direction", "Same direction"),
            Column("inside", "Published in interval"),
            Column("hypothesis", "Hypothesis"),
        ),
        rows=found.paper_comparison,
    )


def published_beside(found: Findings) -> Table:
    """The published ratios beside the measured ones in the paper's sweep of batch sizes: the first screen's."""
    sweep = [row for row in found.paper_comparison if row["message_size"] == _SWEPT_AT] or found.paper_comparison
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sweep:
        key = (row["mode"], row["message_size"], row["batch_size"])
        line = lines.setdefault(key, {name: row[name] for name in ("mode", "message_size", "batch_size")})
        for column in ("published", "ratio", "low", "high"):
            line.setdefault(f"{row['role']}_{column}", row[column])
    titles = {"published": "published", "ratio": "measured", "low": "from", "high": "to"}
    return Table(
        name="published_beside",
        title="Published beside measured",
        note=f"{' / '.join(PAPER_PAIR)}, messages/s: the ratio of the published averages, and the measured ratio with "
        "its 95 % interval.",
        columns=(
            MODE,
            SIZE,
            BATCH,
            *(
                Column(f"{role}_{column}", f"{word}: {title}" if column in ("published", "ratio") else title, "number")
                for role, word in (("production", "Produce"), ("consumption", "Consume"))
                for column, title in titles.items()
            ),
        ),
        rows=tuple(lines[key] for key in sorted(lines)),
    )


def paper_order(found: Findings) -> Table:
    """Whether the cells that were fast for the paper are fast here."""
    return Table(
        name="paper_order",
        title="The order of the cells, there and here",
        note="Spearman's rank correlation over the published cells that were measured here: 1 is the same order from "
        "slowest to fastest, and -1 the opposite. By rate, and by the ratio dsbs / zookeeper.",
        columns=(
            Column("what", "Order by"),
            ROLE,
            Column("n", "Cells", "count"),
            Column("rho", "Rank correlation", "number"),
        ),
        rows=rank_correlation.orders(found),
    )


def paper_audit(found: Findings) -> Table:
    """The faults of the published tables."""
    return Table(
        name="paper_audit",
        title="The published tables, audited",
        note="Found by recomputing from the paper's published numbers; nothing here depends on this run.",
        columns=(Column("finding", "Finding"), Column("where", "Where"), Column("evidence", "Evidence")),
        rows=found.paper_audit,
    )


def paper_explain(found: Findings) -> Table:
    """The paper's ratios, and the pairs of architectures and settings of this run, the nearest first."""
    rows = [{**row, **_by_batch(row["ratios"])} for row in explain(found)]
    published = rows[0]["published"] if rows else {}
    paper = {"architecture": f"{PAPER_PAIR[0]}, published", "against": PAPER_PAIR[1], "others": ""}
    return Table(
        name="paper_explain",
        title="Which assumptions come nearest to the paper",
        note="Ratios of production of 32-byte messages, by batch size. Distance: the mean absolute logarithm of "
        "measured over published. Nearest: in what share of draws from the intervals this row is the nearest.",
        columns=(
            ARCHITECTURE,
            AGAINST,
            OTHERS,
            *(Column(f"at_{batch}", f"Batch {batch}", "number") for batch in published),
            Column("distance", "Distance", "number"),
            Column("nearest", "Nearest", "share"),
        ),
        rows=({**paper, **_by_batch(published)}, *rows) if rows else (),
    )


def _by_batch(ratios: Mapping[int, float]) -> dict[str, float]:
    return {f"at_{batch}": ratio for batch, ratio in ratios.items()}


def audit(found: Findings) -> Table:
    """Every trial: whether it balances, and how long its windows are."""
    return Table(
        name="audit",
        title="Audit of every trial",
        note="Sent = acknowledged = stored, and consumed as far as was asked, or the trial is not valid and leaves the "
        "rates. A count that the system cannot give is empty.",
        columns=(
            BLOCK,
            ARCHITECTURE,
            *CELL,
            Column("kind", "Kind"),
            *(Column(name, name.capitalize(), "count") for name in ("sent", "acknowledged", "stored", "consumed")),
            Column("production_s", "Production (s)", "number"),
            Column("consumption_s", "Consumption (s)", "number"),
            Column("marks", "Marks"),
            Column("verdict", "Verdict"),
            Column("reason", "Reason"),
        ),
        rows=tuple(_audited(found)),
        sections=("try",),
    )


def _audited(found: Findings) -> Iterable[Row]:
    """One row a trial from its one or two roles."""
    trials: dict[str, dict[str, Any]] = {}
    for row in found.trials:
        trial = trials.setdefault(row["trial_id"], {**row, "short": False})
        trial[f"{row['role']}_s"] = row["window_s"]
        trial["short"] |= bool(row["short_window"])
    for trial in sorted(trials.values(), key=lambda row: (row["try"], row["position"], row["trial_id"])):
        marks = [mark for mark, is_so in (("short window", trial["short"]), ("noisy block", trial["noisy"])) if is_so]
        yield {**trial, "marks": ", ".join(marks)}


def equality(found: Findings) -> Table:
    """The settings that every architecture should share."""
    rows = [
        {**row, "equal": f"differs in {row['cells_that_differ']} cells" if row["cells_that_differ"] else "yes"}
        for row in found.equality
    ]
    return Table(
        name="equality",
        title="Held equal",
        note="Settings that every architecture of a cell must share for a difference to be coordination's.",
        columns=(Column("setting", "Setting"), Column("found", "Values"), Column("equal", "Equal in every cell")),
        rows=tuple(rows),
    )
