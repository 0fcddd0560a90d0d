"""Requests to the kernel that Python 3.11 has no calls for: network namespaces and their devices."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWNET: Final = 0x40000000
PR_SET_TIMERSLACK: Final = 29
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN_NO_PI: Final = 0x1001
_libc: Final = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Be in new namespaces. Raises `OSError`."""
    _checked(_libc.unshare(flags), "a new namespace")


def enter(namespace: int) -> None:
    """Be in the namespace of an open file. Raises `OSError`."""
    _checked(_libc.setns(namespace, 0), "entering a namespace")


def namespace(kind: str) -> int:
    """The namespace of a kind that this process is in, as an open file, which keeps it alive."""
    return os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)


def become_root_within() -> None:
    """Be root in a user namespace of one's own, who may make networks there and nothing outside. Raises `OSError`."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path(f"/proc/self/{name}").write_text(line)


def be_on_time() -> None:
    """Ask for timers without their usual 50 microseconds of slack, and (which root alone is given) not to wait for a
    processor behind those that are busy: what is late here would be measured as a longer way."""
    _checked(_libc.prctl(PR_SET_TIMERSLACK, 1), "exact timers")
    if os.sched_getscheduler(0) == os.SCHED_BATCH:  # as what is tethered is
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def tunnel(name: str) -> int:
    """A network device here whose packets this process reads and writes. It goes when the file is closed."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN_NO_PI))
    return device


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
