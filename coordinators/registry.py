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
    """The named back end, or the one outside the product that stands at `MODULE:CLASS`; not yet started. Raises
    `InvalidRequest` for one that is not there."""
    module_name, _, class_name = BACK_ENDS.get(name, name).partition(":")
    if not class_name:
        known = ", ".join(sorted(BACK_ENDS))
        raise InvalidRequest(f"coordinator must be one of {known}, or MODULE:CLASS of another, not {name!r}")
    try:
        found = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidRequest(f"coordinator {name} cannot be loaded: {error}") from error
    return cast("Callable[[CoordinatorSetup], Coordinator]", found)(setup)
