"""The record of one trial: while it runs, when it has ended, and the row that is written of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workloads.faults.injection import as_history
from workloads.measure.metering import Costs
from workloads.results import SCHEMA_VERSION
from workloads.systems.architectures import row_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from workloads.faults.injection import Done
    from workloads.measure.machine import Load
    from workloads.spec.plan import Plan, Trial

VALID: Final = "valid"
INVALID: Final = "invalid"  # finished, and does not balance
FAILED: Final = "failed"  # not finished; run again by the next `run`
UNTIMED: Final = 0  # the number of work outside of windows


@dataclass(frozen=True, slots=True)
class Place:
    """A window's place in its trial and its round."""

    number: int  # in the trial, from 1
    window: str  # production | consumption | both
    round: int = 1
    attempt: int = 1  # above 1 where the round was disturbed
    place: int = 1  # of the architecture in its round


@dataclass(frozen=True, slots=True)
class Window:
    """A window that was measured."""

    at: Place
    opened_ns: int | None  # both None: the window is whole
    closed_ns: int | None
    load: Load

    def row(self) -> dict[str, Any]:
        return {**asdict(self.at), "opened_ns": self.opened_ns, "closed_ns": self.closed_ns, **asdict(self.load)}


@dataclass(slots=True)
class TrialRecord:
    """A trial from its first step to its row. It fills while the trial runs; one that fails keeps what it had."""

    trial: Trial
    rate: float | None = None  # messages/s of all producers together; None for as fast as it goes
    doing: str = "making the topic"  # where it is, for who asks why it takes long
    create_topic_s: float | None = None
    connect_s: float | None = None
    join_s: float | None = None
    windows: list[Window] = field(default_factory=list)
    windows_s: float = 0.0
    audit_s: float = 0.0
    spent_s: float = 0.0
    sent: int = 0
    acknowledged: int = 0
    consumed: int = 0
    wrong_payloads: int = 0
    failed: dict[str, int] = field(default_factory=dict)  # error -> messages
    rates: dict[str, list[float]] = field(default_factory=dict)  # role -> what clients saw in each timed window
    costs: Costs = field(default_factory=Costs)
    audited: Mapping[str, int] | None = None  # messages sent, acknowledged, stored, consumed, as the audit counted them
    requests: pa.Table | None = None
    latency: Sequence[Mapping[str, Any]] = ()
    history: pa.Table | None = None
    verdict: str = ""
    reason: str = ""  # empty when valid

    def note_part(self, part: Mapping[str, Any]) -> None:
        """Count what a client did in one window, or outside of any."""
        self.sent += part.get("sent", 0)
        self.acknowledged += part.get("acknowledged", 0)
        self.consumed += part.get("consumed", 0)
        self.wrong_payloads += part.get("wrong_payloads", 0)
        for error, messages in part.get("failed", {}).items():
            self.failed[error] = self.failed.get(error, 0) + messages

    def note_steps(self, done: Sequence[Done]) -> None:
        """Put what the script did into the history, also of a trial that fails and has no other."""
        import pyarrow as pa

        if done:
            steps = as_history(done, self.trial.id)
            self.history = steps if self.history is None else pa.concat_tables([self.history, steps])

    def drop(self, window: str, turn: int) -> None:
        """Forget the windows of a round, which is measured once more; what clients did in them stays counted."""
        gone = {each.at.number for each in self.windows if (each.at.window, each.at.round) == (window, turn)}
        self.windows = [each for each in self.windows if each.at.number not in gone]
        self.costs.drop(gone)

    def fail(self, reason: str) -> None:
        self.verdict, self.reason = FAILED, reason

    def row(self, plan: Plan) -> dict[str, Any]:
        """The row in `trials/`, whatever came of the trial."""
        trial, cell = self.trial, self.trial.cell
        counts = self.audited or {
            "sent": self.sent, "acknowledged": self.acknowledged, "stored": 0, "consumed": 0,
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
            "settings": trial.architecture.settings,
            "try": trial.block,
            "position": trial.position,
            "mode": cell.mode,
            "message_size": cell.message_size,
            "batch_size": cell.batch_size,
            **_held_equal(trial),
            "rate": self.rate,
            **counts,
            "create_topic_s": self.create_topic_s,
            "connect_s": self.connect_s,
            "join_s": self.join_s,
            "windows": [window.row() for window in self.windows],
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
        "in_flight": cell.workload.in_flight,
        "fetch_ahead": cell.workload.fetch_ahead,
        "load": cell.load,
    }


def _rank(plan: Plan, trial: Trial) -> int:
    names = [architecture.name for architecture in plan.architectures]
    return names.index(trial.architecture.name) if trial.architecture.name in names else len(names)
