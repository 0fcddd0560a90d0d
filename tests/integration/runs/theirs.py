"""A cluster that somebody else runs: one of our brokers, which the runner knows by its addresses alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.console.conftest import Shell

BROKERS = 3


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Its addresses."""
    shell = Shell(folder)
    found = json.loads(shell.says("cluster", "up", "--architecture", "static", "--brokers", str(BROKERS), "--json"))
    try:
        yield ",".join(found["bootstrap"])
    finally:
        shell.says("cluster", "down")
