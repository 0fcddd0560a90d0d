"""How much a plan will take: messages, disk and time.

The rates are those measured before the design on two cores, with three brokers on one machine. They are for deciding
whether to start, not for comparing: another machine may differ by several times, and the run's own progress line
knows better after a few trials.
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.errors import PlanError
from workloads.spec.plan import Cell, Fleet, Plan, Trial
from workloads.spec.settings import Architecture, Effort
from workloads.systems.architectures import Waits, row_of


@dataclass(frozen=True, slots=True)
class _Costs:
    """The time that a driver spends, end to end; the sum is the time of a message."""

    request_s: float
    message_s: float
    byte_s: float


_DRIVERS = {
    # 160,000-220,000 requests/s at one message a request, 1.2-2.0 million messages/s at 20: both follow from these.
    "kafka": _Costs(request_s=5.0e-6, message_s=0.4e-6, byte_s=1 / 500e6),
    # 2,400 requests/s one at a time, 8,700 at 16 at once.
    "grpc": _Costs(request_s=1 / 5_000, message_s=1.0e-6, byte_s=1 / 300e6),
}
_TRIAL_OVERHEAD_S = 0.4  # topic, clients, audit, raw records; those of an architecture overlap with the others'
_WINDOW_OVERHEAD_S = 0.1  # reading counters, ending what is under way
_WARMUP_S = 0.6
_ANALYSIS_S = 25.0  # Spark's start, mostly

_RECORD_BYTES = 20  # what a record adds to its payload, on disk
_BATCH_BYTES = 100  # a batch's header (61), and its share of the index
# Where time sets N, a machine faster than the one of these rates writes more than they say.
_FASTER_MACHINE = 2

_REQUEST_ROW_BYTES = 40  # of Parquet; both times are most of it
_SLICE_ROW_BYTES = 200  # where the client library hides its requests: one row for each 10 ms, with a histogram
_SLICES_PER_S = 100
_TRIAL_FILES_BYTES = 50_000


@dataclass(frozen=True, slots=True)
class TrialEstimate:
    messages: int  # that it produces, for its consumers too
    window_s: float  # of each window of production
    seconds: float  # of the whole trial
    bytes_on_disk: int  # its topic, on all replicas
    bytes_results: int


@dataclass(frozen=True, slots=True)
class Estimate:
    cells: int
    trials: int
    messages: int  # of all trials
    bytes_on_disk_peak: int  # the topics of a cell on all architectures at once, and all raw records
    bytes_results: int  # raw records alone
    seconds: float
    longest_trial_s: float


def estimate(plan: Plan) -> Estimate:
    """Of the blocks that run in any case; a budget is spent whole, as far as is known before."""
    blocks = [block for block in plan.blocks if plan.is_sure(block)]
    expected = {trial.id: estimate_trial(trial, plan.effort) for trial in plan.sure_trials}
    fleets = [fleet for block in blocks for fleet in block.fleets]
    results = sum(each.bytes_results for each in expected.values())
    starts_s = sum(_fleet_s(fleet, plan.warmup) for fleet in fleets)
    seconds = sum(each.seconds for each in expected.values()) + starts_s
    visits = [visit for fleet in fleets for visit in fleet.visits]
    return Estimate(
        cells=len(plan.cells),
        trials=len(expected),
        messages=sum(each.messages for each in expected.values()),
        bytes_on_disk_peak=max(sum(expected[t.id].bytes_on_disk for t in visit.trials) for visit in visits) + results,
        bytes_results=results,
        seconds=max(seconds, plan.effort.budget_s or 0.0) + _ANALYSIS_S,
        longest_trial_s=max(each.seconds for each in expected.values()),
    )


def _fleet_s(fleet: Fleet, warmups: int) -> float:
    """Clusters start side by side, on the same processors; they warm up one after the other."""
    rows = [row_of(architecture) for architecture in fleet.architectures]
    return sum(row.start_s for row in rows) + len(rows) * warmups * _WARMUP_S


def estimate_trial(trial: Trial, effort: Effort) -> TrialEstimate:
    cell, length = trial.cell, trial.length
    production_s = _production_s(cell, trial.architecture)
    consumption_s = _consumption_s(cell, trial.architecture)
    windows = 2 if cell.mode == "split" else 1
    if length.messages is not None:
        messages, margin = length.messages * effort.rounds, 1
        produced_s, consumed_s = length.messages * production_s, length.messages * consumption_s
        spent_s = effort.rounds * (produced_s + consumed_s if windows > 1 else max(produced_s, consumed_s))
    else:
        assert length.duration_s is not None, "a length is one or the other"
        produced_s, margin = length.duration_s + length.lead_s, _FASTER_MACHINE
        fastest_s = min(production_s, consumption_s) if windows > 1 else production_s
        messages = round(effort.rounds * produced_s / fastest_s)
        spent_s = effort.rounds * windows * (produced_s + _WINDOW_OVERHEAD_S)
    requests = -(-messages // cell.batch_size)
    stored = messages * (cell.message_size + _RECORD_BYTES) + requests * _BATCH_BYTES
    return TrialEstimate(
        messages=messages,
        window_s=produced_s,
        seconds=spent_s + _TRIAL_OVERHEAD_S,
        bytes_on_disk=stored * cell.cluster.replication_factor * margin,
        bytes_results=_TRIAL_FILES_BYTES + _rows_bytes(cell, requests, spent_s) * margin,
    )


def check_disk(expected: Estimate, free_bytes: int) -> None:
    """Return if the plan fits; raise PlanError with both numbers if not."""
    if expected.bytes_on_disk_peak > free_bytes:
        raise PlanError(
            f"the plan needs about {expected.bytes_on_disk_peak:,} bytes of disk at its peak, and {free_bytes:,} are "
            "free; free some, shorten the trials, or run a part with --only"
        )


def _production_s(cell: Cell, architecture: Architecture) -> float:
    """The time to produce one message."""
    costs = _DRIVERS[cell.workload.driver]
    request_s = costs.request_s + _waits(architecture).request_s
    fastest_s = request_s / cell.batch_size + costs.message_s + costs.byte_s * cell.message_size
    return fastest_s if cell.workload.rate is None else max(fastest_s, 1 / cell.workload.rate)


def _consumption_s(cell: Cell, architecture: Architecture) -> float:
    """The time to consume one message."""
    costs = _DRIVERS[cell.workload.driver]
    request_s = costs.request_s + _waits(architecture).request_s
    if cell.workload.commit == "every_batch":
        request_s += _waits(architecture).commit_s
    return request_s / cell.batch_size + costs.message_s + costs.byte_s * cell.message_size


def _waits(architecture: Architecture) -> Waits:
    return row_of(architecture).waits(dict(architecture.options))


def _rows_bytes(cell: Cell, requests: int, seconds: float) -> int:
    if cell.workload.driver == "grpc":
        return 2 * requests * _REQUEST_ROW_BYTES
    clients = cell.workload.producers + cell.workload.consumers
    return round(seconds * _SLICES_PER_S) * clients * _SLICE_ROW_BYTES
