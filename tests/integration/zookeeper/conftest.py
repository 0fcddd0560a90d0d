from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.servers import Server, servers_are_stopped, shared_server, stoppable_server
from tests.integration.zookeeper.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["servers_are_stopped"]


@pytest.fixture
def server() -> Server:
    """The one that all tests share: not to be stopped."""
    return shared_server()


@pytest.fixture
def own_server() -> Server:
    """One that may be stopped."""
    server = stoppable_server()
    server.start()
    return server


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A way to the shared server that can be broken."""
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()
