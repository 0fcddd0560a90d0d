"""The other tables, arranged from findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analysis.findings import CONTROL, Findings, Found
from analysis.measures import rank_correlation, request_time, saturation
from analysis.report.appendix import performance, varying_batch_size
from analysis.report.formats import Column, Row, Table

_SIZE, _BATCH = Column("message_size", "Bytes", "count"), Column("batch_size", "Batch", "count")
_MODE, _ROLE, _OTHERS = Column("mode", "Mode"), Column("role", "Role"), Column("others", "Other axes")
_ARCHITECTURE, _AGAINST = Column("architecture", "Architecture"), Column("against", "Against")
_CELL = (_OTHERS, _SIZE, _BATCH, _MODE)
_WINDOW = Column("window", "Window")
_SATURATED = Column("saturated", "Saturated")
_TRIES = Column("n", "Tries", "count")


def every_table(found: Findings) -> list[Table]:
    """All tables that these records have rows for, in the order of the report."""
    made = [
        *(performance(found, architecture) for architecture in found.architectures),
        varying_batch_size(found),
        comparison(found),
        coordination_tax(found),
        request_times(found),
        coordination_request(found),
        cells(found),
        paper_comparison(found),
        paper_order(found),
        paper_audit(found),
        latency(found),
        coordination_cost(found),
        resources(found),
        batches(found),
        audit(found),
        equality(found),
    ]
    return [without_empty_axes(table) for table in made if table.rows]


def without_empty_axes(table: Table) -> Table:
    """Nobody wants a column for axes that this run does not have."""
    if any(row.get("others") for row in table.rows):
        return table
    return Table(
        table.name,
        table.title,
        table.note,
        tuple(column for column in table.columns if column.name != "others"),
        table.rows,
        tuple(name for name in table.sections if name != "others"),
    )


def comparison(found: Findings) -> Table:
    """Every two architectures, cell by cell."""
    return Table(
        name="comparison",
        title="Architectures compared, cell by cell",
        note="Ratio of geometric mean rates, tries paired by block, with its 95 % interval. Faster and slower mean "
        "that the whole interval lies on that side of 1. Saturated: the processes that used 90 % or more of a core; "
        "where a client is among them, the ratio is one of what the client can do.",
        columns=(
            _ARCHITECTURE,
            _AGAINST,
            *_CELL,
            _ROLE,
            Column("n", "Pairs", "count"),
            Column("ratio", "Ratio", "number"),
            Column("low", "from", "number"),
            Column("high", "to", "number"),
            Column("verdict", "Verdict"),
            _SATURATED,
        ),
        rows=_by_pair(_both_marked(found)),
        sections=("architecture", "against"),
    )


def _both_marked(found: Findings) -> Iterable[Found]:
    full = saturation.saturated(found)
    for row in found.ratios:
        if row["metric"] == "rps":
            names = (row["architecture"], row["against"])
            parts = [f"{full[at]} of {at[0]}" for name in names if (at := (name, row["cell"], row["role"])) in full]
            yield {**row, "saturated": ", ".join(parts)}


def _by_pair(rows: Iterable[Found]) -> tuple[Found, ...]:
    return tuple(sorted(rows, key=lambda row: (row["against_rank"], row["architecture_rank"])))


def coordination_tax(found: Findings) -> Table:
    """What share of the rate each architecture gives up against no coordination at all."""
    return Table(
        name="coordination_tax",
        title="Coordination tax",
        note="1 - rate / rate of `static`, which coordinates nothing: the share of the rate that coordination takes, "
        "with its 95 % interval. A negative tax is a rate above that of `static`.",
        columns=(
            _ARCHITECTURE,
            *_CELL,
            _ROLE,
            Column("n", "Pairs", "count"),
            Column("tax", "Tax", "share"),
            Column("low", "from", "share"),
            Column("high", "to", "share"),
        ),
        rows=tuple(taxes(found)),
        sections=("architecture",),
    )


def taxes(found: Findings) -> Iterable[dict[str, Any]]:
    """The ratios against the control, turned round."""
    for row in _by_pair(found.ratios):
        if row["against"] == CONTROL and row["metric"] == "rps":
            low, high = (None if row[end] is None else 1 - row[end] for end in ("high", "low"))
            yield {**row, "tax": 1 - row["ratio"], "low": low, "high": high}


def request_times(found: Findings) -> Table:
    """A request's time split into data path and coordination, and what other prices of coordination would do."""
    return Table(
        name="request_time",
        title="A request's time: data path and coordination",
        note="Microseconds of one request: batch size / rate. Data path: the time of `static` in the same "
        "cell. Coordination: what the architecture adds. Waited: what the brokers "
        "counted, all waits added up; at once: how many requests waited at the same time, so that their waits overlap. "
        f"The ratios are to {request_time.base_of(found)}, were a coordination request to cost 0.1, 0.5, 1 and 5 times "
        "as much as it did for both: data path + k x coordination, with as many waits overlapping as did here.",
        columns=(
            _ARCHITECTURE,
            *_CELL,
            _WINDOW,
            Column("request_us", "Request (µs)", "number"),
            Column("data_us", "Data path (µs)", "number"),
            Column("coordination_us", "Coordination (µs)", "number"),
            Column("waited_us", "Waited (µs)", "number"),
            Column("waiting_at_once", "at once", "number"),
            *(
                Column(request_time.factor_name(factor), f"Ratio at {factor:g}", "number")
                for factor in request_time.FACTORS
            ),
        ),
        rows=_by_architecture(request_time.splits(found)),
        sections=("architecture",),
    )


def coordination_request(found: Findings) -> Table:
    """What one request to a coordinator is made of."""
    return Table(
        name="coordination_request",
        title="A coordination request: client, server, and the rest",
        note="Of one request to the coordinator that somebody waited for, microseconds: the wait from the broker's "
        "question to its answer; processor time of the coordination client in the brokers (kazoo's, for "
        "ZooKeeper); processor time of the coordinator; and what is left of the wait: the wire, the brokers' event "
        "loops, and standing in line behind others.",
        columns=(
            _ARCHITECTURE,
            *_CELL,
            _WINDOW,
            Column("operations", "for 1,000 messages", "number"),
            Column("wait_us", "Wait (µs)", "number"),
            Column("client_us", "Client's CPU (µs)", "number"),
            Column("server_us", "Server's CPU (µs)", "number"),
            Column("rest_us", "Wire and waiting (µs)", "number"),
        ),
        rows=_by_architecture(request_time.requests(found)),
        sections=("architecture",),
    )


def cells(found: Findings) -> Table:
    """The statistics of every cell."""
    return Table(
        name="cells",
        title="Rates and their spread",
        note="Messages/s over the valid tries: mean, standard deviation, coefficient of variation, and the 95 % "
        "interval of the mean (Student's t). One try alone has no interval. Saturated: the process that used 90 % or "
        "more of a core, and so likely limits the rate.",
        columns=(
            _ARCHITECTURE,
            *_CELL,
            _ROLE,
            _TRIES,
            Column("mean", "Mean", "number"),
            Column("sd", "SD", "number"),
            Column("cv", "CV", "share"),
            Column("low", "from", "number"),
            Column("high", "to", "number"),
            _SATURATED,
        ),
        rows=_by_architecture(_marked(found)),
        sections=("architecture",),
    )


def _marked(found: Findings) -> Iterable[Found]:
    full = saturation.saturated(found)
    for row in found.cells:
        if row["metric"] == "rps":
            yield {**row, "saturated": full.get((row["architecture"], row["cell"], row["role"]), "")}


def _by_architecture(rows: Iterable[Found]) -> tuple[Found, ...]:
    return tuple(sorted(rows, key=lambda row: (row["architecture_rank"], row["architecture"])))


def paper_comparison(found: Findings) -> Table:
    """The paper's claim beside what was measured here."""
    return Table(
        name="paper_comparison",
        title="The paper's ratios and ours",
        note="dsbs against zookeeper, messages/s. Published: ratio of the published averages. Measured: ratio of "
        "geometric means with its 95 % interval. The hypothesis is that dsbs is faster.",
        columns=(
            Column("table", "Published in"),
            _SIZE,
            _BATCH,
            _MODE,
            _ROLE,
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


def paper_order(found: Findings) -> Table:
    """Do cells that were fast for the paper come out fast here."""
    return Table(
        name="paper_order",
        title="The order of the cells, there and here",
        note="Spearman's rank correlation over the published cells that were measured here: 1 is the same order from "
        "slowest to fastest, 0 none, -1 the opposite. Of rates, and of the ratio dsbs / zookeeper.",
        columns=(
            Column("what", "Of"),
            _ROLE,
            Column("n", "Cells", "count"),
            Column("rho", "Rank correlation", "number"),
        ),
        rows=rank_correlation.orders(found),
    )


def paper_audit(found: Findings) -> Table:
    """What a careful reader finds in the published tables."""
    return Table(
        name="paper_audit",
        title="The published tables, audited",
        note="Found by recomputing from the paper's published numbers; nothing here depends on this run.",
        columns=(Column("finding", "Finding"), Column("where", "Where"), Column("evidence", "Evidence")),
        rows=found.paper_audit,
    )


def latency(found: Findings) -> Table:
    """Quantiles of every kind of latency."""
    quantiles = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}
    rows = [{**row, **{f"{q}_us": row[f"{q}_ns"] / 1000 for q in quantiles}} for row in found.latency]
    return Table(
        name="latency",
        title="Latency",
        note="Microseconds, over all valid tries together. A producer request lasts from send to acknowledgement, a "
        "consumer request from fetch to answer; end to end is from the producer's timestamp to receipt.",
        columns=(
            Column("kind", "Kind"),
            *_CELL,
            _ARCHITECTURE,
            Column("n", "Measured", "count"),
            *(Column(f"{name}_us", f"{title} (µs)", "number") for name, title in quantiles.items()),
        ),
        rows=tuple(sorted(rows, key=lambda row: str(row["kind"]))),
        sections=("kind",),
    )


def coordination_cost(found: Findings) -> Table:
    """Operations that brokers made to coordinate."""
    return Table(
        name="coordination_cost",
        title="Coordination, for 1,000 messages",
        note="Counted by the brokers in the timed windows: operations, bytes, and the time that requests waited for "
        "them, for every 1,000 messages.",
        columns=(
            _ARCHITECTURE,
            *_CELL,
            _WINDOW,
            Column("operation", "Operation"),
            Column("operations", "Operations", "number"),
            Column("bytes", "Bytes", "number"),
            Column("wait_ms", "Waited (ms)", "number"),
        ),
        rows=_by_architecture(found.coordination),
        sections=("architecture",),
    )


def resources(found: Findings) -> Table:
    """Processor, memory and disk by kind of process."""
    return Table(
        name="resources",
        title="Processor, memory and disk",
        note="In the timed windows, by kind of process; streaming produces and consumes in one window (both). Cores: "
        "the most that one such process used; near 1, it is likely what limits the rate.",
        columns=(
            _ARCHITECTURE,
            *_CELL,
            _WINDOW,
            Column("process", "Process"),
            Column("cpu_us_per_message", "CPU (µs/message)", "number"),
            Column("cores_busiest", "Cores, busiest", "number"),
            Column("rss_max_mb", "Peak memory (MiB)", "number"),
            Column("written_bytes_per_message", "Written (bytes/message)", "number"),
            Column("received_bytes_per_message", "Received (bytes/message)", "number"),
            Column("sent_bytes_per_message", "Sent (bytes/message)", "number"),
            Column("gc_pause_us_per_message", "Stopped for GC (µs/message)", "number"),
            Column("coordination_cpu_us_per_message", "of CPU, coordination client (µs/message)", "number"),
        ),
        rows=_by_architecture(found.resources),
        sections=("architecture",),
    )


def batches(found: Findings) -> Table:
    """Messages a request, as they really were."""
    return Table(
        name="messages_per_request",
        title="Messages per request that really happened",
        note="Asked for by the cell (Batch), seen by the clients, and counted by the brokers.",
        columns=(
            _ARCHITECTURE,
            *_CELL,
            _ROLE,
            Column("client", "Clients saw", "number"),
            Column("broker", "Brokers counted", "number"),
        ),
        rows=_by_architecture(found.batches),
        sections=("architecture",),
    )


def audit(found: Findings) -> Table:
    """Every trial: does it balance, and how long was it timed."""
    return Table(
        name="audit",
        title="Audit of every trial",
        note="Sent = acknowledged = stored, and consumed as far as was asked, or the trial is not valid and leaves the "
        "rates. Windows under 250 ms are marked short; a block whose two calibration trials differ by more than 15 % "
        "is marked noisy.",
        columns=(
            Column("try", "Try", "count"),
            _ARCHITECTURE,
            *_CELL,
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
    """What every architecture had in common."""
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
