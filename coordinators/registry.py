"""The back ends by name, loaded when chosen, so that only the chosen one's libraries are needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from coordinators.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinators.api import Coordinator
    from coordinators.config import CoordinatorSetup

BACK_ENDS: Final = {
    "dsbs": "coordinators.dsbs.coordinator:DsbsCoordinator",
    "static": "coordinators.static.coordinator:StaticCoordinator",
    "zookeeper": "coordinators.zookeeper.coordinator:ZooKeeperCoordinator",
}


def create(name: str, setup: CoordinatorSetup) -> Coordinator:
    """The named back end, not yet started. Raises `InvalidRequest` for a name that is not there."""
    if name not in BACK_ENDS:
        raise InvalidRequest(f"coordinator must be one of {', '.join(sorted(BACK_ENDS))}, not {name!r}")
    module_name, class_name = BACK_ENDS[name].split(":")
    factory = cast("Callable[[CoordinatorSetup], Coordinator]", getattr(import_module(module_name), class_name))
    return factory(setup)
