"""The command line. Each command is a module in `workloads.commands`, imported when it is the one that was asked for,
so that `--help` costs no more than Python itself."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: Final = {
    "plan": "what would run: cells, trials, disk, time",
    "run": "run an experiment matrix, then analyse it",
    "analyze": "tables, figures and report from the raw records of a run",
    "status": "what of a run is done, failed, invalid or left",
    "compare": "two runs, or a run and the 2017 paper, cell by cell",
    "doctor": "what this machine has, what is missing, how to mend it",
    "cluster": "a cluster to play with: up, status, down, and what befalls one process of it",
    "tables": "the information tables of a broker, as the paper prints them",
    "scale": "how the cost of coordination grows with brokers, topics and groups",
    "topic": "topics of any Kafka-compatible cluster: create, list, describe, delete",
    "produce": "send the lines of standard input to a topic",
    "consume": "print the messages of a topic",
}
EXIT_INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in words if not word.startswith("-")), None)
    options = _parser(chosen).parse_args(words)
    try:
        return int(import_module(f"workloads.commands.{options.command}").run(options))
    except BrokerlabError as error:
        if options.debug:
            raise
        print(f"brokerlab: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would be a traceback
        if options.debug:
            raise
        print("brokerlab: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output went, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # the machine refuses: a full disk, a folder that is not ours, no more processes
        if options.debug:
            raise
        print(f"brokerlab: {error.strerror}: {error.filename or 'no file'}", file=sys.stderr)
        return 1


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """All commands by name and line; the arguments of the chosen one alone."""
    parser = argparse.ArgumentParser(
        prog="brokerlab",
        description="Compare how message brokers coordinate: run an experiment matrix, and see which architecture is "
        "faster where, by how much, and why.",
        epilog="example: brokerlab run experiments.yaml --profile quick",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        command = commands.add_parser(
            name, help=line, description=line[0].upper() + line[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        if name == chosen:
            import_module(f"workloads.commands.{name}").add_arguments(command)
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
