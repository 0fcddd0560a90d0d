"""Commits that wait: those in a row that wait for the same write are answered together."""

from __future__ import annotations

import asyncio
from typing import Any

from brokers.listeners.answers import Answers
from brokers.listeners.dispatch import Promised
from brokers.listeners.events import Answer, Event
from brokers.listeners.requests.promised import PromisedCommits
from coordinators.errors import JournalFailed, Unavailable
from tests.contract.backend import asynchronous


class Named:
    """Stands for a commit's template: its answer says whose it is, and what came of it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def answer(self, commit: object, error: int) -> bytes:
        return f"{self.name}:{error} ".encode()


class Connection:
    def __init__(self) -> None:
        self.answers = Answers(1_000_000)
        self.known: list[Answer] = []
        self.commits = PromisedCommits(self.answers, self.tell)

    def tell(self, event: Event, what: Any) -> None:
        if event is Event.PROMISED:
            self.answers.add(what)
        else:
            assert event is Event.KNOWN
            self.known.append(what)

    def add(self, kept: asyncio.Future[None], name: str) -> None:
        template: Any = Named(name)
        commit: Any = None
        self.commits.add(Promised(kept, template, commit))


def future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


@asynchronous
async def test_commits_in_a_row_that_wait_for_the_same_write_have_one_answer() -> None:
    connection, first, second = Connection(), future(), future()
    for kept, name in ((first, "a"), (first, "b"), (second, "c"), (first, "d")):
        connection.add(kept, name)
    assert len(connection.answers) == 3
    second.set_exception(Unavailable("away"))
    await asyncio.sleep(0)
    assert [answer.pieces for answer in connection.known] == [[b"c:15 "]]
    first.set_result(None)
    await asyncio.sleep(0)
    assert [answer.pieces for answer in connection.known[1:]] == [[b"a:0 ", b"b:0 "], [b"d:0 "]]


@asynchronous
async def test_another_answer_between_two_commits_keeps_them_apart() -> None:
    connection, kept = Connection(), future()
    connection.add(kept, "a")
    connection.answers.add(Answer([b"between"]))
    connection.add(kept, "b")
    assert len(connection.answers) == 3


@asynchronous
async def test_a_write_that_failed_refuses_all_of_them_and_a_bug_ends_the_connection() -> None:
    connection, refused, broken = Connection(), future(), future()
    for name in ("a", "b"):
        connection.add(refused, name)
    connection.add(broken, "c")
    refused.set_exception(JournalFailed("no room"))
    broken.set_exception(ZeroDivisionError())
    await asyncio.sleep(0)
    together, alone = connection.known
    assert together.pieces == [b"a:15 ", b"b:15 "]
    assert alone.pieces is None
    assert isinstance(alone.error, ZeroDivisionError)
