"""Free ports on this machine for servers that must know each other's before they start."""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING, Final

from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Collection

# Below the range from which the kernel takes the ports of outgoing connections, so that none of those takes a port
# between the look and the start.
RANGE: Final = range(20_000, 32_000)
TRIES_MAX: Final = 1_000


class NoFreePort(BrokerlabError):
    """Every port that was tried is in use."""


def free_ports(count: int, avoid: Collection[int] = ()) -> list[int]:
    """`count` ports that nobody listens on now. Somebody else may take one first: who starts a server on one of
    them retries with others when the server says that its port is in use."""
    found: list[int] = []
    for port in random.SystemRandom().sample(RANGE, TRIES_MAX):
        if len(found) == count:
            break
        if port not in avoid and _is_free(port):
            found.append(port)
    if len(found) < count:
        raise NoFreePort(f"no {count} free ports among {TRIES_MAX} tried between {RANGE.start} and {RANGE.stop}")
    return found


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
