"""The systems under test by name, loaded when chosen, so that only the chosen one's libraries are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from workloads.reference import load
from workloads.systems.architectures import row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from workloads.systems.api import System, SystemSetup

SYSTEMS: Final = {
    "brokerlab": "workloads.systems.brokerlab:Brokerlab",
    "external": "workloads.systems.external:External",
    "kafka": "workloads.systems.kafka:Kafka",
}


def create(setup: SystemSetup) -> System:
    """The system that the architecture's row names, not yet started: one of `SYSTEMS`, or a `MODULE:CLASS`."""
    name = row_of(setup.architecture).system
    factory = cast("Callable[[SystemSetup], System]", load(SYSTEMS.get(name, name)))
    return factory(setup)
