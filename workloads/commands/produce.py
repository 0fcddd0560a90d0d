"""`brokerlab produce TOPIC`"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from workloads.commands.topic import add_bootstrap

ACKS: Final = ("0", "1", "all")
COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic")
    add_bootstrap(parser)
    parser.add_argument("--key-separator", metavar="TEXT", help="a line is KEY TEXT VALUE; default: lines have no keys")
    parser.add_argument("--header", type=_header, action="append", default=[], metavar="NAME=VALUE",
                        help="of every message; may be repeated")  # fmt: skip
    parser.add_argument("--acks", choices=ACKS, default="all", help="who must have a message; default: %(default)s")
    parser.add_argument("--compression", choices=COMPRESSIONS, default="none", help="default: %(default)s")
    parser.epilog = (
        "examples:\n"
        "  seq 10 | brokerlab produce numbers\n"
        "  brokerlab produce orders --key-separator : --header source=shop <orders.txt\n\n"
        "exit code 0: every message is acknowledged; 1: some are not; 2: nothing was sent, and you can mend it"
    )


def run(options: argparse.Namespace) -> int:
    from workloads.console.connection import chosen
    from workloads.console.sending import Sender, SendSettings

    separator = options.key_separator.encode() if options.key_separator else None
    settings = SendSettings(options.acks, options.compression, options.header, separator)
    Sender(chosen(options.bootstrap), options.topic, settings).send(sys.stdin.buffer)
    return 0


def _header(text: str) -> tuple[str, bytes]:
    name, found, value = text.partition("=")
    if not name or not found:
        raise argparse.ArgumentTypeError(f"it must be NAME=VALUE, not {text!r}")
    return name, value.encode()
