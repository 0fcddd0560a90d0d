"""Errors of a broker's shell that are not one part's own."""

from __future__ import annotations

from typing import ClassVar


class PortInUse(Exception):
    """Somebody else listens on the port. Definite: nothing was started."""

    definite: ClassVar[bool] = True


class HostUnusable(Exception):
    """The host is no address that this machine can listen on, whatever the port. Definite: nothing was started."""

    definite: ClassVar[bool] = True


class FolderInUse(Exception):
    """Another broker has the data folder; two would destroy it. Definite: nothing was started."""

    definite: ClassVar[bool] = True


class FolderOfAnother(Exception):
    """The data folder is that of a broker with another id. Definite: nothing was started."""

    definite: ClassVar[bool] = True


class FolderOfEarlierVersion(Exception):
    """The data folder is laid out as an earlier version did. Definite: nothing was started."""

    definite: ClassVar[bool] = True
