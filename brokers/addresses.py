"""Whether this machine can listen where a config says, found out before anything is started.

The listeners' libraries fail in the same way where a port is taken, which another port mends, and where the host is
wrong, which no port does.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import ClassVar


class PortInUse(Exception):
    """Somebody else listens on the port. Definite: nothing was started."""

    definite: ClassVar[bool] = True


class HostUnusable(Exception):
    """The host is no address that this machine can listen on, whatever the port. Definite: nothing was started."""

    definite: ClassVar[bool] = True


async def check_host(host: str) -> None:
    """Raises `HostUnusable` where no port of the host can be this machine's."""
    if ":" in host:
        raise HostUnusable(f"cannot listen on {host!r}: a host is a name or an IPv4 address")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:  # the latter where a label is longer than DNS has them
        raise HostUnusable(f"cannot listen on {host!r}, which cannot be resolved: {_reason(error)}") from error
    addresses = sorted({str(place[0]) for *_, place in found})
    if not any(_is_here(family, place) for family, _, _, _, place in found):
        raise HostUnusable(f"cannot listen on {host!r}: {', '.join(addresses)} is no address of this machine")


def _reason(error: OSError | UnicodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _is_here(family: int, place: tuple[object, ...]) -> bool:
    """Whether a port that nobody asked for can be had there. Other failures show when the broker listens."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.bind(place)
    except OSError as error:
        return error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
    return True
