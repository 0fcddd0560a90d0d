"""The cost of a change as a cluster grows: DSBS counted in the simulation of its real machine, ZooKeeper by rules.

The rules are read off the ZooKeeper back end, one request after the other; they stand in `ZOOKEEPER` alone. At the
sizes in `MEASURED` a test holds them to the requests to a real server: the exact numbers, and the bytes to a tenth. A
request counts as two messages, itself and its answer; a watch that fires is one more. Rows are marked with where they
come from: `simulated` (counted, of the real machine in virtual time), `measured`, `extrapolated`. Only what passes
between brokers and ZooKeeper counts; what the servers of an ensemble say to each other comes on top.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workloads.errors import BrokerlabError
from workloads.processes.process import tethered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTITIONS: Final = 3  # of each topic, as in the simulation
MEASURED: Final = frozenset({(3, 10), (5, 10)})  # brokers, topics; groups do not enter into these changes
# Sizes on the wire, rounded, without TCP and IP: a request with its path and the answer with a znode, a watch that
# fires, and what the transaction that makes a topic takes beyond a plain request.
REQUEST_BYTES: Final = 235
WATCH_BYTES: Final = 60
CREATION_BYTES: Final = 1_100

AXES: Final = ("brokers", "topics", "groups")
CHANGES: Final = ("topic created", "broker dies", "broker joins")


class Size(NamedTuple):
    brokers: int
    topics: int
    groups: int

    def __str__(self) -> str:
        return f"{self.brokers}x{self.topics}x{self.groups}"


class Operations(NamedTuple):
    """The messages between the brokers and ZooKeeper."""

    requests: int
    watches: int
    creations: int = 0

    @property
    def messages(self) -> int:
        return 2 * self.requests + self.watches

    @property
    def bytes(self) -> int:
        return self.requests * REQUEST_BYTES + self.watches * WATCH_BYTES + self.creations * CREATION_BYTES


@dataclass(frozen=True, slots=True)
class Row:
    architecture: str
    source: str
    change: str
    brokers: int
    topics: int
    groups: int
    messages: int
    bytes: int
    agreed_ms: int | None
    idle_messages_per_s: float | None


class SimulationFailed(BrokerlabError):
    """The simulation ended before it had counted everything; what it said stands above."""


def _topic_created(size: Size) -> Operations:
    """List the brokers, one transaction; then each broker hears of it and reads names, topic and each partition."""
    return Operations(2 + size.brokers * (2 + PARTITIONS), size.brokers, creations=1)


def _broker_dies(size: Size) -> Operations:
    """Each survivor hears of it and reads all survivors; the controller writes each partition that the dead broker
    led (as many as the others, and not the controller itself), and each survivor hears of it and reads it."""
    alive, led = size.brokers - 1, round(size.topics * PARTITIONS / size.brokers)
    return Operations(alive * (1 + alive) + led * (1 + alive), alive + led * alive)


def _broker_joins(size: Size) -> Operations:
    """It looks for its cluster, registers, reads brokers, topics and controller; the others hear of it and read all."""
    own = 2 + 3 + size.brokers + size.topics * (1 + PARTITIONS)
    others = size.brokers - 1
    return Operations(own + others * (1 + size.brokers), others)


ZOOKEEPER: Final[dict[str, Callable[[Size], Operations]]] = {
    "topic created": _topic_created,
    "broker dies": _broker_dies,
    "broker joins": _broker_joins,
}


def by_rule(size: Size) -> list[Row]:
    """ZooKeeper's rows. A death shows there when the session ends, so there is no time to give that a rule knows."""
    source = "measured" if (size.brokers, size.topics) in MEASURED else "extrapolated"
    costs = {change: ZOOKEEPER[change](size) for change in CHANGES}
    return [
        Row("zookeeper", source, change, *size, cost.messages, cost.bytes, None, None) for change, cost in costs.items()
    ]


def simulated(sizes: Iterable[Size], seed: int) -> Iterable[Row]:
    """DSBS's rows as they are counted, by a process of its own. Raises `SimulationFailed`."""
    command = [sys.executable, "-m", "coordinators.dsbs.simulation.scale", "--seed", str(seed), *map(str, sizes)]
    with subprocess.Popen(tethered(command), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield _row(json.loads(line))
    if process.returncode != 0:
        raise SimulationFailed(f"the simulation ended with {process.returncode}")


def _row(found: dict[str, Any]) -> Row:
    size = Size(found["brokers"], found["topics"], found["groups"])
    counts = (found["messages"], found["bytes"], found["agreed_ms"], found["heartbeats_per_s"])
    return Row("dsbs", "simulated", found["change"], *size, *counts)


def write_csv(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", newline="") as sink:
        writer = csv.DictWriter(sink, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def plot(rows: Sequence[Row], axis: str, fixed: Size, path: Path) -> None:
    """Messages of each change over one axis, the others as in `fixed`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(CHANGES), figsize=(13, 4), sharey=True, layout="constrained")
    for panel, change in zip(panels, CHANGES, strict=True):
        _draw(panel, along(rows, axis, fixed, change), axis)
        panel.set_title(change)
        panel.set_xlabel(axis)
    panels[0].set_ylabel("messages")
    panels[0].legend(frameon=False)
    others = ", ".join(f"{getattr(fixed, name)} {name}" for name in AXES if name != axis)
    figure.suptitle(f"Coordination messages per change ({others})")
    figure.savefig(path)
    pyplot.close(figure)


def _draw(panel: Axes, rows: Sequence[Row], axis: str) -> None:
    for architecture, label, style in (
        ("dsbs", "dsbs (simulated)", "o-"),
        ("zookeeper", "zookeeper (measured at 3 and 5 brokers)", "s--"),
    ):
        points = sorted((getattr(row, axis), row.messages) for row in rows if row.architecture == architecture)
        panel.plot([x for x, _ in points], [y for _, y in points], style, label=label)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.grid(visible=True, alpha=0.3)


def along(rows: Sequence[Row], axis: str, fixed: Size, change: str) -> list[Row]:
    """The rows of a change in which only `axis` differs from `fixed`."""
    others = [name for name in AXES if name != axis]
    return [
        row
        for row in rows
        if row.change == change and all(getattr(row, name) == getattr(fixed, name) for name in others)
    ]
