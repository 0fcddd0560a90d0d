"""The systems under test by name, loaded when chosen, so that only the chosen one's libraries are needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from workloads.systems.api import System, SystemSetup

SYSTEMS: Final = {
    "brokerlab": "workloads.systems.brokerlab:Brokerlab",
    "external": "workloads.systems.external:External",
}


def create(system: str, setup: SystemSetup) -> System:
    """The system, not yet started: one of `SYSTEMS`, or a class outside the product as `module:Class`."""
    module_name, _, class_name = SYSTEMS.get(system, system).partition(":")
    factory = cast("Callable[[SystemSetup], System]", getattr(import_module(module_name), class_name))
    return factory(setup)
