"""The job that a trial gives each of its clients, and the order for each of its windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workloads.clients.drivers.api import ConsumeJob, DriverError, ProduceJob, WindowOrder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from workloads.spec.plan import Trial

# A producer gives up on a message before the trial is given up, so that the trial can say why.
ANSWER_SHARE: Final = 0.75
ANSWER_WITHIN_MIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a trial's clients by their number."""

    trial: Trial
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
            in_flight=workload.in_flight,
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
            in_flight=workload.in_flight,
            fetch_ahead=workload.fetch_ahead,
            out=str(self.out("consumer", number)),
            end_to_end=cell.mode != "split",
            history=self.history,
        )

    def order(self, window: int, number: int, messages: int | None, rate: float | None) -> WindowOrder:
        """One producer's share of a window: messages, and messages/s, are of all producers together."""
        producers = self.trial.cell.workload.producers
        return WindowOrder(
            number=window,
            messages=None if messages is None else share(messages, producers, number),
            rate=None if rate is None else rate / producers,
        )

    def out(self, role: str, number: int) -> Path:
        """The prefix of the names of a client's files."""
        return self.work / f"{role}-{number}"


def share(total: int, parts: int, number: int) -> int:
    """How many of `total` fall to one of `parts`, as even as whole numbers go."""
    return total // parts + (number < total % parts)


def refuse_shares(partitions: int, shares: Sequence[Sequence[int]]) -> None:
    """Raise `DriverError` unless every partition is read by one consumer and no more."""
    if sorted(partition for of_one in shares for partition in of_one) != list(range(partitions)):
        raise DriverError(f"the consumers share {partitions} partitions as {', '.join(map(str, shares))}")
