"""The tables of rates: who is faster, by how much, how sure, and what each window gave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analysis.findings import CONTROL, Findings, Found
from analysis.report import verdicts
from analysis.report.cautions import OfCells
from analysis.report.columns import AGAINST, ARCHITECTURE, BLOCK, BLOCKS, CELL, RATIO, ROLE, by_architecture, by_pair
from analysis.report.formats import Column, Table

_MARKS = Column("marks", "Marks")
_VERDICT = Column("said", "Verdict")


def comparison(found: Findings) -> Table:
    """Every two architectures, cell by cell."""
    return Table(
        name="comparison",
        title="Architectures compared, cell by cell",
        note="Ratio of geometric mean rates, paired within rounds, with its 95 % interval. Faster and slower: the "
        "whole interval lies on that side of 1. Survives: also after Benjamini and Hochberg's correction for "
        "the number of comparisons. Moderated: the interval borrows variance from like cells.",
        columns=(
            ARCHITECTURE,
            AGAINST,
            *CELL,
            ROLE,
            BLOCKS,
            Column("rounds", "Rounds", "count"),
            *RATIO,
            _VERDICT,
            Column("equal", "Equal within 5 %"),
            Column("survives", "Survives"),
            Column("moderated", "Moderated"),
            _MARKS,
        ),
        rows=by_pair(_compared(found)),
        sections=("architecture", "against"),
    )


def _compared(found: Findings) -> Iterable[Found]:
    floors, cautions = verdicts.floors(found), OfCells(found)
    for row in found.ratios:
        floor = verdicts.floor_of(floors, verdicts.family_of(row))
        yield {**row, "said": verdicts.of_rate(row, floor).words, "marks": cautions.marks(row)}


def pooled(found: Findings) -> Table:
    """One answer for each pair and family, over all cells."""
    return Table(
        name="pooled",
        title="Architectures compared over all cells",
        note="Geometric mean of the cells' ratios, with its 95 % interval over blocks. Streaming is the rate of "
        "messages that went all the way. A cost below 1 is cheaper. Holm's p corrects for the number of "
        "primary comparisons.",
        columns=(
            ARCHITECTURE,
            AGAINST,
            Column("family", "Family"),
            Column("what", "Ratio of"),
            BLOCKS,
            Column("cells", "Cells", "count"),
            Column("left_out", "Cells left out", "count"),
            *RATIO,
            _VERDICT,
            Column("p_holm", "p (Holm)", "number"),
            Column("primary", "Primary"),
        ),
        rows=by_pair(_pooled(found)),
        sections=("architecture", "against"),
    )


def _pooled(found: Findings) -> Iterable[Found]:
    floors = verdicts.floors(found)
    for row in found.pooled:
        if row["metric"] == "rps":
            said = verdicts.of_rate(row, verdicts.floor_of(floors, row["family"]))
        else:
            said = verdicts.of_cost(row)
        what = "rates" if row["metric"] == "rps" else "processor time a message"
        yield {**row, "said": said.words, "what": what}


def zero(found: Findings) -> Table:
    """What is found where there is nothing to find."""
    return Table(
        name="zero",
        title="The instrument's zero: one architecture under two names",
        note="False alarms: comparisons of single cells that came out different, with the 95 % interval of their "
        "share (Clopper and Pearson). Floor: 95 % of the cells' ratios lie within this factor of 1; no claim "
        "below it.",
        columns=(
            ARCHITECTURE,
            AGAINST,
            Column("family", "Family"),
            BLOCKS,
            *RATIO,
            Column("comparisons", "Comparisons", "count"),
            Column("false_alarms", "False alarms", "count"),
            Column("alarm_low", "share from", "share"),
            Column("alarm_high", "share to", "share"),
            Column("floor", "Floor", "number"),
        ),
        rows=found.zero,
    )


def load(found: Findings) -> Table:
    """Latency at a fixed rate."""
    times = {"ack_p50": "Acknowledged, median", "ack_p99": "p99", "e2e_p50": "Received, median", "e2e_p99": "p99 "}
    return Table(
        name="load",
        title="Latency at a share of the sustained rate",
        note="Milliseconds from the intended send to acknowledgement and to receipt. The rate is a share of what "
        "the slowest architecture sustains in the cell, so all have the same rate.",
        columns=(
            *CELL[1:3],
            Column("load", "Load", "share"),
            ARCHITECTURE,
            BLOCKS,
            Column("rate", "Asked (messages/s)", "number"),
            Column("achieved", "Achieved", "number"),
            *(Column(f"{name}_ms", f"{title} (ms)", "number") for name, title in times.items()),
        ),
        rows=tuple(
            {**row, **{f"{name}_ms": _in_ms(row[f"{name}_us"]) for name in times}}
            for row in sorted(found.load, key=lambda row: (row["batch_size"], row["message_size"], row["load"]))
        ),
        sections=("message_size", "batch_size"),
    )


def _in_ms(value: float | None) -> float | None:
    return None if value is None else value / 1000


def windows(found: Findings) -> Table:
    """Every window, with its marks."""
    marks = ("disturbed", "unsettled", "few")
    rows = (
        {**row, "marks": ", ".join([*(mark for mark in marks if row[mark]), *([] if row["used"] else ["not used"])])}
        for row in found.windows
    )
    return Table(
        name="windows",
        title="Every window",
        note="Disturbed: other programs used more than 5 % of the machine. Unsettled: the first part of the window"
        " differs from its second half. Few: too few messages for a ratio. A window that was disturbed is "
        "measured again, and the attempt with the least load is used.",
        columns=(
            ARCHITECTURE,
            *CELL,
            ROLE,
            BLOCK,
            Column("round", "Round", "count"),
            Column("place", "Place", "count"),
            Column("attempts", "Attempts", "count"),
            Column("messages", "Messages", "count"),
            Column("window_s", "Length (s)", "number"),
            Column("rps", "Messages/s", "number"),
            Column("foreign", "Foreign load", "share"),
            _MARKS,
            Column("verdict", "Verdict"),
        ),
        rows=by_architecture(rows),
        sections=("architecture",),
    )


def coordination_tax(found: Findings) -> Table:
    """The share of the rate that each architecture on the control's system loses to coordination."""
    return Table(
        name="coordination_tax",
        title="Coordination tax",
        note="1 - rate / rate of `static`, which coordinates nothing: the share of the rate that coordination "
        "takes, with its 95 % interval. A negative tax is a rate above that of `static`.",
        columns=(
            ARCHITECTURE,
            *CELL,
            ROLE,
            BLOCKS,
            Column("tax", "Tax", "share"),
            Column("low", "from", "share"),
            Column("high", "to", "share"),
        ),
        rows=tuple(taxes(found)),
        sections=("architecture",),
    )


def taxes(found: Findings) -> Iterable[dict[str, Any]]:
    """1 - ratio for every ratio to the control on one system."""
    beside_control = found.beside_control
    for row in by_pair(found.ratios):
        if row["against"] == CONTROL and row["architecture"] in beside_control and row["ratio"] is not None:
            low, high = (None if row[end] is None else 1 - row[end] for end in ("high", "low"))
            yield {**row, "tax": 1 - row["ratio"], "low": low, "high": high}


def cells(found: Findings) -> Table:
    """The statistics of every cell."""
    return Table(
        name="cells",
        title="Rates and their spread",
        note="Messages/s: mean of the blocks, standard deviation, coefficient of variation, and the 95 % interval "
        "of the mean (Student's t). One block alone has no interval. Marks: a process that used 90 % or more "
        "of a core, and windows that were disturbed or unsettled.",
        columns=(
            ARCHITECTURE,
            *CELL,
            ROLE,
            BLOCKS,
            Column("windows", "Windows", "count"),
            Column("mean", "Mean", "number"),
            Column("sd", "SD", "number"),
            Column("cv", "CV", "share"),
            Column("low", "from", "number"),
            Column("high", "to", "number"),
            _MARKS,
        ),
        rows=by_architecture(_marked(found)),
        sections=("architecture",),
    )


def _marked(found: Findings) -> Iterable[Found]:
    cautions = OfCells(found)
    for row in found.cells:
        if row["metric"] == "rps":
            yield {**row, "marks": cautions.marks(row)}
