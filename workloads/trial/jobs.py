"""The job that a trial gives each of its clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workloads.clients.drivers.api import ConsumeJob, DriverError, ProduceJob, WindowOrder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from workloads.spec.plan import Trial
    from workloads.trial.record import Size

# A producer gives up on a message before the trial is given up, so that the trial can say why.
ANSWER_SHARE: Final = 0.75
ANSWER_WITHIN_MIN_S: Final = 1.0
IN_FLIGHT: Final = 5
FETCH_AHEAD: Final = 20


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a trial's clients by their number."""

    trial: Trial
    size: Size | None  # None for as many messages as the trial's time takes
    bootstrap: tuple[str, ...]
    topic: str
    work: Path
    timeout_s: float  # of the trial
    history: bool = False
    tell_every: int = 0  # so many acknowledged messages of each producer; 0 is never

    def produce(self, number: int) -> ProduceJob:
        cell, workload = self.trial.cell, self.trial.cell.workload
        return ProduceJob(
            driver=workload.driver,
            bootstrap=self.bootstrap,
            topic=self.topic,
            partitions=cell.cluster.partitions,
            producer=number,
            message_size=cell.message_size,
            batch_size=cell.batch_size,
            acks=cell.cluster.acks,
            in_flight=IN_FLIGHT,
            out=str(self.out("producer", number)),
            answer_within_s=max(ANSWER_WITHIN_MIN_S, ANSWER_SHARE * self.timeout_s),
            history=self.history,
            tell_every=self.tell_every,
        )

    def consume(self, number: int) -> ConsumeJob:
        cell, workload = self.trial.cell, self.trial.cell.workload
        return ConsumeJob(
            driver=workload.driver,
            bootstrap=self.bootstrap,
            topic=self.topic,
            partitions=tuple(range(number, cell.cluster.partitions, workload.consumers)),
            consumer=number,
            group=f"group-{self.topic}",
            message_size=cell.message_size,
            batch_size=cell.batch_size,
            fetch=workload.fetch,
            commit=workload.commit,
            commit_interval_ms=workload.commit_interval_ms,
            in_flight=IN_FLIGHT,
            fetch_ahead=FETCH_AHEAD,
            out=str(self.out("consumer", number)),
            end_to_end=cell.mode == "streaming",
            history=self.history,
        )

    def out(self, role: str, number: int) -> Path:
        """The prefix of the names of a client's files."""
        return self.work / f"{role}-{number}"

    def order(self, role: str, number: int) -> WindowOrder:
        """The one window of a client."""
        workload = self.trial.cell.workload
        if role == "consumer":
            return WindowOrder(1 if self.trial.cell.mode == "streaming" else 2)
        messages = None if self.size is None else share(self.size.messages, workload.producers, number)
        return WindowOrder(1, messages, None if workload.rate is None else workload.rate / workload.producers)

    def duration_s(self) -> float | None:
        """How long a window is that ends by the runner's word."""
        return self.trial.length.duration_s if self.size is None else None


def share(total: int, parts: int, number: int) -> int:
    """How many of `total` fall to one of `parts`, as even as whole numbers go."""
    return total // parts + (number < total % parts)


def refuse_shares(partitions: int, shares: Sequence[Sequence[int]]) -> None:
    """Raise `DriverError` unless every partition is read by one consumer and no more."""
    if sorted(partition for of_one in shares for partition in of_one) != list(range(partitions)):
        raise DriverError(f"the consumers share {partitions} partitions as {', '.join(map(str, shares))}")
