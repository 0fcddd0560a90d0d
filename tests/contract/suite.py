"""How a claim of the contract becomes a test of every back end."""

from __future__ import annotations

import asyncio
from inspect import Signature, signature
from typing import TYPE_CHECKING, Literal

import pytest

from tests.contract.backends import backends

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path
    from typing import Any

    from tests.contract.backend import Backend

    Claim = Callable[..., Coroutine[Any, Any, None]]

Trait = Literal["shares", "shares_topics", "passes_leadership", "keeps_commits", "passes_commits"]


def contract(*needs: Trait, without: Trait | None = None) -> Callable[[Claim], Callable[..., None]]:
    """A test of each back end that has the traits that it needs, and of none that has the one to be `without`."""
    kinds = [
        kind
        for kind in backends()
        if all(getattr(kind, trait) for trait in needs) and not (without and getattr(kind, without))
    ]
    parameters = [pytest.param(kind, id=kind.name, marks=[pytest.mark.java] if kind.java else []) for kind in kinds]

    def made(claim: Claim) -> Callable[..., None]:
        def test(kind: type[Backend], tmp_path: Path, **more: object) -> None:
            asyncio.run(_held(claim, kind(tmp_path), more))

        _, *rest = signature(claim).parameters.values()
        kind, folder, *_ = signature(test).parameters.values()
        test.__name__, test.__doc__ = claim.__name__, claim.__doc__
        test.__signature__ = Signature([kind, folder, *rest])  # type: ignore[attr-defined]
        test.pytestmark = list(getattr(claim, "pytestmark", []))  # type: ignore[attr-defined]
        return pytest.mark.parametrize("kind", parameters)(test)

    return made


async def _held(claim: Claim, cluster: Backend, more: Mapping[str, object]) -> None:
    try:
        await claim(cluster, **more)
    finally:
        await cluster.close()
