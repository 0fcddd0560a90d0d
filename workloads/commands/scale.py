"""`brokerlab scale`: how the cost of coordination grows with brokers, topics and groups."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workloads.commands.arguments import whole

if TYPE_CHECKING:
    from workloads.scale import Row, Size

BROKERS: Final = (3, 5, 10, 20, 50, 100, 200, 500, 1000)
TOPICS: Final = (1, 10, 100, 1000)
GROUPS: Final = (1, 10, 100, 1000)
FIXED: Final = (5, 10, 10)  # what does not vary
BROKERS_MAX: Final = 2000
SEED_MAX: Final = 2**63 - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "example: brokerlab scale --brokers 3,5,50\n\n"
        "DSBS is counted in a simulation of its real machine; 1,000 brokers take about half a minute and 1 GB.\n"
        "ZooKeeper is measured at 3 and 5 brokers with 10 topics, and extrapolated from there by the rules in\n"
        "workloads/scale.py; each row says which it is. Tables and plots go to the folder:\n"
        "scale.csv, scale-brokers.png, scale-topics.png, scale-groups.png."
    )
    parser.add_argument("--brokers", type=_sizes, default=BROKERS, metavar="N,...", help="default: 3 to 1,000")
    parser.add_argument("--out", type=Path, default=Path("results/scale"), help="default: %(default)s")
    parser.add_argument("--seed", type=whole(0, SEED_MAX), default=1)


def run(options: argparse.Namespace) -> int:
    from workloads.scale import AXES, Size, by_rule, plot, simulated, write_csv

    _require_writable(options.out)
    fixed = Size(*FIXED)
    values = {"brokers": options.brokers, "topics": TOPICS, "groups": GROUPS}
    sizes = list(dict.fromkeys(fixed._replace(**{axis: value}) for axis in AXES for value in values[axis]))
    rows: list[Row] = [row for size in sizes for row in by_rule(size)]
    _head()
    for row in simulated(sizes, options.seed):
        rows.append(row)
        _show(row, next(ruled for ruled in rows if _size(ruled) == _size(row) and ruled.change == row.change))
    write_csv(rows, options.out / "scale.csv")
    for axis in AXES:
        plot(rows, axis, fixed, options.out / f"scale-{axis}.png")
    print(f"\nwritten to {options.out}: scale.csv and a plot for each of {', '.join(AXES)}")
    return 0


def _require_writable(folder: Path) -> None:
    """Now, and not when all is counted. Raises `UserError`."""
    from tempfile import TemporaryFile

    from workloads.errors import UserError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(f"{folder} cannot be written to: {error.strerror}; name another folder with --out") from error


def _head() -> None:
    print(
        "messages and bytes per change; dsbs: simulated; zookeeper: counted on a real server, or extrapolated from that"
    )
    print(f"{'brokers':>7} {'topics':>6} {'groups':>6}  {'change':14} {'dsbs':>9} {'bytes':>11} {'agreed':>9} ", end="")
    print(f"{'zookeeper':>11} {'bytes':>13} {'':12}  {'idle dsbs':>12}")


def _show(row: Row, ruled: Row) -> None:
    print(
        f"{row.brokers:7,} {row.topics:6,} {row.groups:6,}  {row.change:14} {row.messages:9,} {row.bytes:11,} "
        f"{row.agreed_ms:6,} ms {ruled.messages:11,} {ruled.bytes:13,} {ruled.source:12}  "
        f"{row.idle_messages_per_s or 0:10,.0f}/s",
        flush=True,
    )


def _size(row: Row) -> Size:
    from workloads.scale import Size

    return Size(row.brokers, row.topics, row.groups)


def _sizes(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isdecimal() and 3 <= int(word) <= BROKERS_MAX for word in words):
        raise argparse.ArgumentTypeError(f"whole numbers from 3 to {BROKERS_MAX}, with commas between, not {text!r}")
    return tuple(map(int, words))
