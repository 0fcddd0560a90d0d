"""A client process of the benchmark, driven by lines of JSON as `workloads.clients.client` is, which also says what the
window itself cost it: its preparation before and its check of what it saw afterwards are not the brokers' matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workloads.clients.client import Inbox, say
from workloads.clients.drivers.api import ConsumeJob, ProduceJob
from workloads.clients.drivers.kafka import Consumer, Producer
from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.clients.drivers.api import RequestRow


def produce(job: ProduceJob, inbox: Inbox) -> None:
    producer = Producer(job)
    producer.connect()
    say(ready=True)
    inbox.next()
    produced = producer.run()
    say(done=_told(produced.rows, producer.cpu_s, wrong=sum(produced.failed.values())))
    producer.close()


def consume(job: ConsumeJob, inbox: Inbox) -> None:
    consumer = Consumer(job)
    inbox.forget_signals()
    consumer.join()
    say(ready=True)
    inbox.next()
    seen = consumer.run(inbox)
    say(done=_told(seen.rows, consumer.cpu_s, wrong=seen.wrong_payloads))
    consumer.close()


def _told(rows: Sequence[RequestRow], cpu_s: float, *, wrong: int) -> dict[str, Any]:
    return {
        "messages": sum(row.messages for row in rows),
        "started_ns": rows[0].sent_ns,
        "ended_ns": rows[-1].done_ns,
        "cpu_s": cpu_s,
        "wrong": wrong,
    }


def main() -> None:
    inbox = Inbox()
    while True:
        message = inbox.next()
        try:
            if "produce" in message:
                produce(
                    ProduceJob(**{**message["produce"], "bootstrap": tuple(message["produce"]["bootstrap"])}), inbox
                )
            else:
                job = message["consume"]
                consume(ConsumeJob(**{**job, **{key: tuple(job[key]) for key in ("bootstrap", "partitions")}}), inbox)
        except BrokerlabError as error:
            say(failed=str(error))


if __name__ == "__main__":
    main()
