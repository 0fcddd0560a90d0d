"""`brokerlab cluster up|status|down|start|stop|kill|pause|resume`: a cluster to play with."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workloads.commands.arguments import whole
from workloads.spec.settings import ClusterSettings

if TYPE_CHECKING:
    from workloads.playground.playground import ClusterState, Playground
    from workloads.spec.settings import Architecture

BROKERS_MAX: Final = 32
SPEC: Final = Path("experiments.yaml")
SETTINGS: Final = ClusterSettings(
    brokers=3, partitions=3, replication_factor=1, acks=1, fsync="never", fsync_interval_ms=None
)
# Actions on one process; each returns when it is done.
VERBS: Final = {
    "start": "start a broker that has ended, with its data and ports, and return when it serves",
    "stop": "end a broker in order (SIGTERM)",
    "kill": "end a broker at once (SIGKILL)",
    "pause": "let a broker stand still (SIGSTOP)",
    "resume": "let a paused broker go on (SIGCONT)",
}
NONE_UP: Final = "no cluster is up in {}; `brokerlab cluster up` starts one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  brokerlab cluster up --architecture static --brokers 3\n"
        "  brokerlab cluster kill 2       # then `status` says so, and `start 2` starts it with its data and ports\n"
        "  brokerlab cluster pause zookeeper\n\n"
        "The cluster outlives the command and ends with `brokerlab cluster down`. Its state, logs and data are in the\n"
        "folder .brokerlab of the current directory; data and ports stay for the next `up` of the same kind.\n"
        "exit code of status: 0 if a cluster is up, 1 if none is"
    )
    actions = parser.add_subparsers(dest="action", metavar="|".join(("up", "status", "down", *VERBS)), required=True)
    up = actions.add_parser("up", help="start a cluster, and return when it serves")
    up.add_argument("--architecture", metavar="A", help="by its name in the file; default: the file's first")
    up.add_argument(
        "--brokers", type=whole(1, BROKERS_MAX), metavar="N", help="default: as the file's `cluster` says, or 3"
    )
    up.add_argument("--file", type=Path, help=f"default: {SPEC} where there is one")
    status = actions.add_parser("status", help="what runs: addresses, processes, architecture")
    down = actions.add_parser("down", help="end the cluster; its data stays")
    verbs = [actions.add_parser(verb, help=what) for verb, what in VERBS.items()]
    for action in verbs:
        action.add_argument("process", type=_process, metavar="N", help="number of a broker, or zookeeper")
    for action in (up, status, down, *verbs):
        action.add_argument("--dir", type=Path, default=Path(), help="whose playground; default: the current directory")
        action.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    for action in (up, status):
        action.add_argument("--json", action="store_true", help="the same as data")


def run(options: argparse.Namespace) -> int:
    from workloads.playground.playground import Playground

    playground = Playground(options.dir)
    if options.action == "up":
        return _up(playground, options)
    if options.action == "status":
        return _status(playground, as_json=options.json)
    if options.action == "down":
        return _down(playground)
    print(playground.do(options.action, options.process))
    return 0


def _process(text: str) -> str:
    """The name of a process by what a person calls it."""
    return f"broker-{text}" if text.isascii() and text.isdigit() else text


def _up(playground: Playground, options: argparse.Namespace) -> int:
    from workloads.errors import UserError

    if not options.dir.is_dir():
        raise UserError(f"{options.dir} is no directory")
    architecture, settings = _chosen(options)
    _show(playground.up(architecture, settings), as_json=options.json)
    return 0


def _chosen(options: argparse.Namespace) -> tuple[Architecture, ClusterSettings]:
    """Raises `UserError` for a file that cannot be read and for a name that is not in it."""
    from workloads.errors import UserError, did_you_mean
    from workloads.spec.spec import load
    from workloads.systems.architectures import ORDINARY

    known, settings = ORDINARY, SETTINGS
    if options.file is not None or SPEC.exists():
        spec = load(options.file or SPEC)
        known = {each.name: each for each in spec.architectures}
        settings = spec.cluster
    name = options.architecture or next(iter(known))
    if name not in known:
        raise UserError(f"no architecture {name!r}; {did_you_mean(name, known)}")
    return known[name], replace(settings, brokers=options.brokers or settings.brokers)


def _status(playground: Playground, *, as_json: bool) -> int:
    found = playground.status()
    if found is not None:
        _show(found, as_json=as_json)
        return 0
    print(json.dumps({"up": False}) if as_json else NONE_UP.format(playground.folder.parent))
    return 1


def _down(playground: Playground) -> int:
    from workloads.playground.playground import NotUp

    try:
        playground.down()
    except NotUp as error:
        print(error)
    else:
        print(f"ended; its data stays in {playground.folder}")
    return 0


def _show(state: ClusterState, *, as_json: bool) -> None:
    found: dict[str, Any] = {"up": True, **asdict(state)}
    print(json.dumps(found, indent=2) if as_json else "\n".join(_lines(state)))


def _lines(state: ClusterState) -> list[str]:
    return [
        f"architecture  {state.architecture}",
        f"bootstrap     {','.join(state.bootstrap)}",
        *([f"gRPC          {','.join(state.grpc)}"] if state.grpc else []),
        f"supervisor    process {state.supervisor}",
        *(
            f"{process.name:14}process {process.pid}{'' if process.command is None else f'; {process}'}"
            for process in state.processes
        ),
        f"data          {state.data}",
        f"logs          {state.logs}",
    ]
