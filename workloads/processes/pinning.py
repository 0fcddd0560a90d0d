"""Bind processes to processors by role, so that brokers and clients do not take each other's (`pin` in the file)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from workloads.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection

    from workloads.spec.settings import Pin


def check(pin: Pin) -> None:
    """Raises `UserError` where a processor is named that this machine does not have, or does not give us."""
    usable = os.sched_getaffinity(0)
    for role, processors in (("brokers", pin.brokers), ("coordinator", pin.coordinator), ("clients", pin.clients)):
        if missing := set(processors) - usable:
            raise UserError(f"pin: {role}: {_listed(missing)} cannot be used; usable here: {_listed(usable)}")


def bind(pid: int, processors: Collection[int]) -> None:
    """Let a process run on these processors only; on any where there are none to choose from.

    Each thread is bound by itself, and a thread that is made later is bound as its maker is. So this looks again until
    it finds none that is new.
    """
    bound: set[str] = set()
    while processors and (found := _threads(pid) - bound):
        for thread in found:
            try:
                os.sched_setaffinity(int(thread), processors)
            except ProcessLookupError:  # it has ended
                continue
        bound |= found


def _threads(pid: int) -> set[str]:
    try:
        return {task.name for task in (Path("/proc") / str(pid) / "task").iterdir()}
    except FileNotFoundError:  # the process has ended, which whoever watches it will say
        return set()


def _listed(processors: Collection[int]) -> str:
    return ", ".join(map(str, sorted(processors)))
