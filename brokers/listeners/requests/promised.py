"""Commits of one connection that wait to be kept, and their answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from brokers.listeners.events import Answer, Event
from brokers.listeners.requests.commit import KEEPING_FAILED

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from brokers.listeners.answers import Answers
    from brokers.listeners.dispatch import Promised


class PromisedCommits:
    """`tell` hears of each answer that is promised, and when it is known; `answers` are the connection's."""

    def __init__(self, answers: Answers, tell: Callable[[Event, Any], None]) -> None:
        self._answers = answers
        self._tell = tell
        self._last: Answer | None = None
        self._commits: list[Promised] = []  # whose answer is the last

    def add(self, promised: Promised) -> None:
        """Answer when it is kept. Commits in a row that wait for one and the same write are answered together."""
        unsent = self._answers.unsent
        if unsent and unsent[-1] is self._last and self._commits[0].kept is promised.kept:
            self._commits.append(promised)
            return
        self._last, self._commits = Answer(commits=True), [promised]
        promised.kept.add_done_callback(partial(self._over, self._last, self._commits))
        self._tell(Event.PROMISED, self._last)

    def _over(self, answer: Answer, commits: list[Promised], kept: asyncio.Future[None]) -> None:
        if kept.cancelled():
            answer.pieces = []
        elif (error := kept.exception()) is None or isinstance(error, KEEPING_FAILED):
            answer.pieces = [promised.answer(error) for promised in commits]
        else:
            answer.error = error
        self._tell(Event.KNOWN, answer)
