"""A client process: `python -m workloads.clients.client [DRIVER...]`, told by lines of JSON, one job after another.

    runner -> client   {"produce": {...}} or {"consume": {...}}    a job; the client connects
    client -> runner   {"joined": true}                            consumers alone
    runner -> client   {"all_joined": true}                        consumers alone
    client -> runner   {"ready": {"seconds": 0.1, ...}}            connected, or joined with these "partitions"
  then any number of windows:
    runner -> client   {"window": {"number": 1, "messages": null, "rate": null}}
    client -> runner   {"prepared": true}
    runner -> client   {"go": true}
    client -> runner   {"working": true}                           the first batch is acknowledged, or has come; where
                                                                   both ends work, the first fetch is on its way
    client -> runner   {"acknowledged": 1000}                      producers alone, as often as the job says
    runner -> client   {"targets": {"0": 1000, ...}}               consumers alone: read up to here, and no further; may
                                                                   come before the word to go
    runner -> client   {"stop": true}                              send, or take, no more
    client -> runner   {"done": {...}}                             what came of this window
  at last:
    runner -> client   {"keep": true}                              write down what was seen in all windows, or (false)
                                                                   do not
    client -> runner   {"kept": true}
    client -> runner   {"failed": "why"}                           instead of any answer

One process serves all trials of a cluster's life, so that what is timed never holds the start of an interpreter. It
loads the drivers that it is to use, and what it writes files with, while the cluster starts. It ends when the runner
closes its standard input.
"""

from __future__ import annotations

import gc
import json
import os
import queue
import sys
import threading
from functools import partial
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from workloads.clients.client_files import summary_of_consumed, summary_of_produced, write_consumed, write_produced
from workloads.clients.drivers.api import Consumed, ConsumeJob, Produced, ProduceJob, WindowOrder, load
from workloads.clients.history import History, history_path
from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")


class Inbox:
    """The talk with the runner in the middle of a job: a thread reads the runner's words."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._targets: Mapping[int, int] | None = None
        self._all_joined = False
        self._stopped = False
        self._working = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "targets" in message:
                self._targets = {int(partition): end for partition, end in message["targets"].items()}
            elif "stop" in message:
                self._stopped = True
            elif "all_joined" in message:
                self._all_joined = True
            else:
                self._forget(message)
                self._messages.put(message)
        os._exit(0)  # the runner is done with us, or gone

    def _forget(self, message: Mapping[str, Any]) -> None:
        """What was said of the last window, or of the last job, does not hold for the next."""
        if "window" in message:
            self._targets = None
            self._stopped = self._working = False
        elif "consume" in message:
            self._all_joined = False

    def next(self) -> dict[str, Any]:
        return self._messages.get()

    def targets(self) -> Mapping[int, int] | None:
        return self._targets

    def stopped(self) -> bool:
        return self._stopped

    def all_joined(self) -> bool:
        return self._all_joined

    def working(self) -> None:
        if not self._working:
            self._working = True
            say(working=True)


def say(**message: object) -> None:
    print(json.dumps(message), flush=True)


def history_of(job: ProduceJob | ConsumeJob) -> History | None:
    """Where the job asks for one."""
    if not job.history:
        return None
    path = history_path(Path(job.out))
    if isinstance(job, ConsumeJob):
        return History(path, "consumer", job.consumer)
    return History(path, "producer", job.producer, job.tell_every, lambda count: say(acknowledged=count))


def produce(job: ProduceJob, inbox: Inbox) -> None:
    history = history_of(job)
    producer = load(job.driver).Producer(job, history)
    all_windows = Produced()
    try:
        before = monotonic()
        producer.connect()
        say(ready={"seconds": monotonic() - before})
        while "window" in (message := inbox.next()):
            producer.prepare(WindowOrder(**message["window"]))
            sent = at_work(inbox, partial(producer.run, inbox))
            all_windows.extend(sent)
            say(done=summary_of_produced(sent))
        if message["keep"]:
            write_produced(job, all_windows)
        if history is not None:
            history.close()
        say(kept=True)
    finally:
        producer.close()


def consume(job: ConsumeJob, inbox: Inbox) -> None:
    history = history_of(job)
    consumer = load(job.driver).Consumer(job, history)
    all_windows = Consumed()
    try:
        before = monotonic()
        consumer.join()
        say(joined=True)
        partitions = consumer.settle(inbox)
        say(ready={"seconds": monotonic() - before, "partitions": list(partitions)})
        while "window" in (message := inbox.next()):
            consumer.prepare(WindowOrder(**message["window"]))
            seen = at_work(inbox, partial(consumer.run, inbox, both=job.end_to_end))
            all_windows.extend(seen)
            say(done=summary_of_consumed(seen))
        if message["keep"]:
            write_consumed(job, all_windows)
        if history is not None:
            history.close()
        say(kept=True)
    finally:
        consumer.close()


def at_work(inbox: Inbox, run: Callable[[], T]) -> T:
    """One window, when the runner says so. Its messages are many and live until its end, so looking for garbage among
    them would only cost time: that is done before."""
    gc.collect()
    say(prepared=True)
    inbox.next()
    gc.disable()
    try:
        result = run()
    finally:
        gc.enable()
    inbox.working()
    return result


def serve(inbox: Inbox) -> None:
    while True:
        message = inbox.next()
        try:
            if "produce" in message:
                produce(
                    ProduceJob(**{**message["produce"], "bootstrap": tuple(message["produce"]["bootstrap"])}), inbox
                )
            else:
                job = message["consume"]
                lists = {name: tuple(job[name]) for name in ("bootstrap", "partitions")}
                consume(ConsumeJob(**{**job, **lists}), inbox)
        except* BrokerlabError as failed:
            say(failed="; ".join(dict.fromkeys(map(str, _leaves(failed)))))


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def load_all(drivers: Sequence[str]) -> None:
    for driver in drivers:
        load(driver)
    import_module("pyarrow.feather")


class WithoutPandas:
    """pyarrow asks pandas, which takes half a second to load, whether the lists that it is given come from there. A
    client has none of it, so it is not found there."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} has no work in a client", name=name)


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutPandas)
    heard = Inbox()
    load_all(sys.argv[1:])
    serve(heard)
