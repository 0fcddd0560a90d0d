"""Objects named by their place, so that they are loaded when they are chosen and may be outside the product."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(reference: str) -> Any:
    """The object at `MODULE:NAME`. Raises `ValueError` with a clause that says why there is nothing."""
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, SyntaxError, ValueError) as error:
        raise ValueError(f"{reference} cannot be loaded: {error}") from error
