"""One module for each back end, with `BACKENDS`: its classes. They are found by being here."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.contract.backend import Backend


def backends() -> list[type[Backend]]:
    modules = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return [backend for module in modules for backend in module.BACKENDS]
