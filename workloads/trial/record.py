"""The record of one trial: while it runs, when it has ended, and the row that is written of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from workloads.clients.client_files import with_trial_id
from workloads.faults.injection import as_history
from workloads.measure.metering import Costs
from workloads.results import SCHEMA_VERSION
from workloads.systems.architectures import row_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from workloads.faults.injection import Done
    from workloads.spec.plan import Plan, Trial

VALID: Final = "valid"
INVALID: Final = "invalid"  # finished, and does not balance
FAILED: Final = "failed"  # not finished; run again by the next `run`


@dataclass(frozen=True, slots=True)
class Size:
    """How long a trial is, in messages."""

    messages: int
    to_consume: int  # at least


@dataclass(slots=True)
class TrialRecord:
    """A trial from its first step to its row. It fills while the trial runs; one that fails keeps what it had."""

    trial: Trial
    size: Size | None = None  # None for as many as the trial's time takes
    doing: str = "making the topic"  # where it is, for who asks why it takes long
    create_topic_s: float | None = None
    connect_s: float | None = None
    join_s: float | None = None
    windows_s: float = 0.0
    audit_s: float = 0.0
    produced: list[dict[str, Any]] = field(default_factory=list)  # what each producer said of its part
    consumed: list[dict[str, Any]] = field(default_factory=list)  # and each consumer
    costs: Costs = field(default_factory=Costs)
    audited: Mapping[str, int] | None = None  # messages sent, acknowledged, stored, consumed, as the audit counted them
    requests: pa.Table | None = None
    latency: Sequence[Mapping[str, Any]] = ()
    history: pa.Table | None = None
    verdict: str = ""
    reason: str = ""  # empty when valid

    def sent(self) -> int:
        return sum(part["sent"] for part in self.produced)

    def acknowledged(self) -> int:
        return sum(part["acknowledged"] for part in self.produced)

    def rates(self) -> tuple[float, float]:
        """Messages/s produced and consumed, for the progress line and the sizing of later trials."""
        window_p = max((part["window_s"] for part in self.produced), default=0.0)
        window_c = max((part["window_s"] for part in self.consumed), default=0.0)
        consumed = sum(part["consumed"] for part in self.consumed)
        return self.acknowledged() / window_p if window_p else 0.0, consumed / window_c if window_c else 0.0

    def note_steps(self, done: Sequence[Done]) -> None:
        """Put what the script did into the history, also of a trial that fails and has no other."""
        import pyarrow as pa

        if done:
            steps = as_history(done, self.trial.id)
            self.history = steps if self.history is None else pa.concat_tables([self.history, steps])

    def under(self, trial: Trial) -> TrialRecord:
        """The same, for another trial."""
        requests = None if self.requests is None else with_trial_id(self.requests, trial.id)
        latency = [{**row, "trial_id": trial.id} for row in self.latency]
        return replace(self, trial=trial, requests=requests, latency=latency)

    def row(self, plan: Plan) -> dict[str, Any]:
        """The row in `trials/`, whatever came of the trial."""
        trial, cell, size = self.trial, self.trial.cell, self.size
        counts = self.audited or {
            "sent": self.sent(), "acknowledged": self.acknowledged(), "stored": 0, "consumed": 0,
        }  # fmt: skip
        return {
            "schema_version": SCHEMA_VERSION,
            "spec_hash": plan.spec_hash,
            "trial_id": trial.id,
            "kind": trial.kind,
            "cell": cell.id,
            "experiments": list(cell.experiments),
            "architecture": trial.architecture.name,
            "architecture_rank": _rank(plan, trial),
            "system": row_of(trial.architecture).system,
            "try": trial.block,
            "position": trial.position,
            "mode": cell.mode,
            "message_size": cell.message_size,
            "batch_size": cell.batch_size,
            **_held_equal(trial),
            "messages": size.messages if size else counts["sent"],
            "to_consume": size.to_consume if size else counts["stored"],
            **counts,
            "create_topic_s": self.create_topic_s,
            "connect_s": self.connect_s,
            "join_s": self.join_s,
            "verdict": self.verdict,
            "reason": self.reason,
            **asdict(self.costs),
        }


def _held_equal(trial: Trial) -> dict[str, Any]:
    cell = trial.cell
    axes = {**cell.cluster.as_axes(), **cell.workload.as_axes()}
    return {
        **{name: axes[name] for name in ("driver", "fsync", "commit", "fetch", "topology", "rtt_ms")},
        "brokers": cell.cluster.brokers,
        "partitions": cell.cluster.partitions,
        "replication_factor": cell.cluster.replication_factor,
        "acks": cell.cluster.acks,
        "producers": cell.workload.producers,
        "consumers": cell.workload.consumers,
        "rate": cell.workload.rate,
    }


def _rank(plan: Plan, trial: Trial) -> int:
    names = [architecture.name for architecture in plan.architectures]
    return names.index(trial.architecture.name) if trial.architecture.name in names else len(names)
