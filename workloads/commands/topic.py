"""`brokerlab topic create|list|describe|delete`"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from workloads.commands.arguments import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.console.connection import Cluster
    from workloads.console.topics import Description, TopicRow

# The most that the client library asks of a cluster; a cluster may take less.
PARTITIONS_MAX: Final = 100_000
REPLICATION_FACTOR_MAX: Final = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  brokerlab topic create orders --partitions 3\n"
        "  brokerlab topic describe orders --json --bootstrap 127.0.0.1:9092"
    )
    actions = parser.add_subparsers(dest="action", metavar="create|list|describe|delete", required=True)
    create = actions.add_parser("create", help="make a topic; returns when every broker knows it")
    create.add_argument("topic")
    create.add_argument("--partitions", type=whole(1, PARTITIONS_MAX), metavar="N", help="default: the cluster's")
    create.add_argument(
        "--replication-factor", type=whole(1, REPLICATION_FACTOR_MAX), metavar="N", help="default: the cluster's"
    )
    create.add_argument(
        "--config", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="may be repeated"
    )
    listing = actions.add_parser("list", help="all topics")
    describe = actions.add_parser("describe", help="partitions, leaders, replicas, offsets, configuration")
    describe.add_argument("topic")
    delete = actions.add_parser("delete", help="delete a topic with all that is in it")
    delete.add_argument("topic")
    for action in (create, listing, describe, delete):
        add_bootstrap(action)
        action.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    for action in (listing, describe):
        action.add_argument("--json", action="store_true", help="the same as data")


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT,...", help="default: the cluster that `brokerlab cluster up` started here"
    )


def run(options: argparse.Namespace) -> int:
    from workloads.console import topics
    from workloads.console.connection import chosen

    cluster = chosen(options.bootstrap)
    if options.action == "create":
        _create(cluster, options)
    elif options.action == "delete":
        topics.delete(cluster, options.topic)
        print(f"deleted {options.topic}")
    elif options.action == "describe":
        _describe(topics.describe(cluster, options.topic), as_json=options.json)
    else:
        _list(topics.list_all(cluster), as_json=options.json)
    return 0


def _create(cluster: Cluster, options: argparse.Namespace) -> None:
    from workloads.console.topics import BROKER_DECIDES, create

    partitions = options.partitions or BROKER_DECIDES
    create(cluster, options.topic, partitions, options.replication_factor or BROKER_DECIDES, dict(options.config))
    print(f"made {options.topic}")


def _list(rows: Sequence[TopicRow], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    _table([("topic", "partitions", "replicas"), *((r.name, r.partitions, r.replication_factor) for r in rows)])


def _describe(found: Description, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(found), indent=2))
        return
    config = ", ".join(f"{key}={value}" for key, value in found.config.items()) or "as the cluster has it"
    print(f"topic {found.name}, configuration: {config}")
    header = ("partition", "leader", "replicas", "in sync", "first offset", "next offset")
    rows = [
        (p.partition, p.leader, _ids(p.replicas), _ids(p.in_sync), p.start_offset, p.end_offset)
        for p in found.partitions
    ]
    _table([header, *rows])


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def _table(rows: Sequence[Sequence[object]]) -> None:
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _pair(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not key or not found:
        raise argparse.ArgumentTypeError(f"it must be KEY=VALUE, not {text!r}")
    return key, value
