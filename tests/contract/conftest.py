from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.backends.dsbs_processes import places
from tests.contract.servers import servers_are_stopped

__all__ = ["servers_are_stopped"]


@pytest.fixture(scope="session", autouse=True)
def processes_are_ended() -> Iterator[None]:
    yield
    if places.cache_info().currsize:
        places().close()
        places.cache_clear()
