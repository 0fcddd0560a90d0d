"""`brokerlab tables --broker N`: the tables that a broker of the playground holds, as the paper draws them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workloads.commands.arguments import whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

BROKERS_MAX: Final = 32  # of a playground
EXIT_UNSUPPORTED: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "example: brokerlab cluster up --architecture dsbs && brokerlab tables --broker 2\n\n"
        "Brokers whose tables have the same hash hold the same tables. Offsets are of the groups that broker N serves."
    )
    parser.add_argument(
        "--broker", type=whole(1, BROKERS_MAX), required=True, metavar="N", help="which broker, counted from 1"
    )
    parser.add_argument("--dir", type=Path, default=Path(), help="whose playground; default: the current directory")
    parser.add_argument("--json", action="store_true", help="the same as data")


def run(options: argparse.Namespace) -> int:
    from workloads.errors import BrokerlabError, UserError
    from workloads.playground.playground import NotUp, Playground
    from workloads.processes.process import tethered

    state = Playground(options.dir).status()
    if state is None:
        raise NotUp(f"no cluster is up in {options.dir}; `brokerlab cluster up --architecture dsbs` starts one")
    if not 1 <= options.broker <= len(state.grpc):
        raise UserError(f"--broker must be 1 to {len(state.grpc)}, not {options.broker}")
    command = [sys.executable, "-m", "brokers.rpc.tables", state.grpc[options.broker - 1]]
    done = subprocess.run(tethered(command), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        kind = UserError if done.returncode == EXIT_UNSUPPORTED else BrokerlabError
        raise kind(f"broker {options.broker} of {state.architecture}: {done.stderr.strip()}")
    print(done.stdout.strip() if options.json else shown(json.loads(done.stdout)))
    return 0


def shown(tables: dict[str, Any]) -> str:
    """The paper's two tables, and who is known to be there."""
    partitions = [(row["topic"], row["partition"], row["broker"], row["epoch"]) for row in tables["partitions"]]
    offsets = [(row["consumer"], row["topic"], row["partition"], row["offset"]) for row in tables["offsets"]]
    brokers = [(row["broker"], row["address"], row["status"], row["incarnation"]) for row in tables["brokers"]]
    refused = [(reason, count) for reason, count in sorted(tables["refused"].items())]
    parts = [
        f"tables {tables['hash']}",
        _table(("topic", "partition", "broker", "epoch"), partitions),
        _table(("consumer", "topic", "partition", "offset"), offsets),
        _table(("broker", "address", "status", "incarnation"), brokers),
    ]
    if refused:
        parts.append(_table(("refused from peers", "times"), refused))
    return "\n\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    texts = [" | ".join(f"{word:{width}}" for word, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([texts[0], "-+-".join("-" * width for width in widths), *texts[1:]])
