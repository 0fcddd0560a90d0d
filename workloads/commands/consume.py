"""`brokerlab consume TOPIC`"""

from __future__ import annotations

import argparse
import math
import sys

from workloads.commands.topic import add_bootstrap


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic")
    add_bootstrap(parser)
    parser.add_argument("--from-beginning", action="store_true", help="with a group: where the group has no place yet")
    parser.add_argument("--group", metavar="G", help="read as a member of this group, and keep its place")
    parser.add_argument("--max-messages", type=_count, metavar="N", help="end after so many")
    parser.add_argument("--timeout-s", type=_seconds, metavar="S", help="end when no message came for so long")
    parser.add_argument("--print-key", action="store_true")
    parser.add_argument("--print-headers", action="store_true")
    parser.add_argument("--print-offset", action="store_true", help="and the partition")
    parser.epilog = (
        "example: brokerlab consume orders --from-beginning --max-messages 10 --print-key\n\n"
        "It prints a line for each message, what is asked for before the value, with tabs between; until Ctrl-C, if\n"
        "nothing else ends it."
    )


def run(options: argparse.Namespace) -> int:
    from workloads.console.connection import chosen
    from workloads.console.reading import Reader, ReadSettings, Shown

    settings = ReadSettings(options.group, options.from_beginning, options.max_messages, options.timeout_s)
    shown = Shown(options.print_offset, options.print_headers, options.print_key)
    Reader(chosen(options.bootstrap), options.topic, settings).print_to(sys.stdout.buffer, shown)
    return 0


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"it must be a whole number, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"it must be a number of seconds above 0, not {text!r}")
    return seconds
