from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from coordinators.errors import OutcomeUnknown
from coordinators.static.coordinator import StaticCoordinator
from tests.contract.backend import Backend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from coordinators.api import Coordinator
    from coordinators.model import Broker
    from coordinators.registry import Answering


class Questions:
    """Between brokers in one process. `lost` says which questions never arrive, `unanswered` whose answers do not."""

    def __init__(self) -> None:
        self.answering: dict[Broker, Answering] = {}
        self.asked: list[tuple[int, bytes]] = []
        self.lost: Callable[[int, bytes], bool] = lambda to, question: False
        self.unanswered: Callable[[int, bytes], bool] = lambda to, question: False

    def of(self, me: Broker) -> End:
        return End(self, me)


class End:
    """One broker's, a `coordinators.registry.Asking`."""

    def __init__(self, questions: Questions, me: Broker) -> None:
        self._questions = questions
        self._me = me

    def answer_with(self, answering: Answering | None) -> None:
        if answering is None:
            self._questions.answering.pop(self._me, None)
        else:
            self._questions.answering[self._me] = answering

    async def ask(self, to: Broker, question: bytes, within_s: float) -> bytes:
        self._questions.asked.append((to.id, question))
        if to not in self._questions.answering or self._questions.lost(to.id, question):
            raise OutcomeUnknown(f"127.0.0.1:{to.rpc_port} cannot be reached: it is not there")
        answer = await self._questions.answering[to](question)
        if self._questions.unanswered(to.id, question):
            raise OutcomeUnknown(f"no answer from 127.0.0.1:{to.rpc_port} within {within_s:g} s")
        return answer


class StaticBackend(Backend):
    """All brokers run from the first start on: without one of them no topic can be made."""

    name = "static"
    shares = False
    passes_leadership = False
    options: ClassVar[dict[str, object]] = {}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._questions = Questions()
        self._ahead: dict[Broker, Coordinator] = {}  # started before they were asked for

    async def start_as(self, me: Broker) -> Coordinator:
        if me in self._ahead:
            return self._ahead.pop(me)
        started = await super().start_as(me)
        for other in self.brokers:
            if other not in self._questions.answering:
                self._ahead[other] = await super().start_as(other)
        return started

    def made(self, me: Broker) -> Coordinator:
        return StaticCoordinator(replace(self.setup(me, **self.options), asking=self._questions.of(me)))

    async def kill(self, coordinator: Coordinator) -> None:
        """Nobody would notice."""
        self._questions.of(coordinator.me).answer_with(None)


class InMemory(StaticBackend):
    name = "static-memory"
    options: ClassVar[dict[str, object]] = {"offsets": "memory"}
    keeps_commits = passes_commits = False


class LooksUp(StaticBackend):
    name = "static-lookup"
    options: ClassVar[dict[str, object]] = {"metadata": "lookup", "delay_us": 200}


class LooksUpInMemory(InMemory):
    name = "lookup-memory"
    options: ClassVar[dict[str, object]] = {"metadata": "lookup", "offsets": "memory"}


BACKENDS = [StaticBackend, InMemory, LooksUp, LooksUpInMemory]
