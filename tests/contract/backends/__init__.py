"""One module for each back end, with `BACKENDS`: its classes. They are found by being here; those of toys, which stand
for back ends outside the product, by being called `backend` in a folder of `tests.toys`."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tests import toys

if TYPE_CHECKING:
    from tests.contract.backend import Backend


def backends() -> list[type[Backend]]:
    names = [f"{__name__}.{found.name}" for found in pkgutil.iter_modules(__path__)]
    names += [f"{found.name}.backend" for found in pkgutil.iter_modules(toys.__path__, "tests.toys.") if found.ispkg]
    modules = [import_module(name) for name in names if find_spec(name) is not None]
    return [backend for module in modules for backend in module.BACKENDS]
