"""Bytes over TCP of every process, as the kernel counts them for each connection: asked once for all connections
(sock_diag(7)), so it costs the processes nothing and needs no help of theirs.

A process in a network namespace of its own has instead what crossed the devices there, headers included. Where the
kernel does not answer such questions, nothing is known.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_DUMP: Final = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3
_EXTENSION_INFO: Final = 2  # INET_DIAG_INFO: struct tcp_info
_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_INODE_AT: Final = 68  # in struct inet_diag_msg, whose length follows
_MESSAGE_BYTES: Final = 72
_ACKED_AND_RECEIVED: Final = struct.Struct("=QQ")  # bytes, in struct tcp_info
_ACKED_AT: Final = 120
_ANSWER_BYTES_MAX: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one connection's end, since it was made."""

    received: int
    sent: int


# A process's connections (by inode) -> their traffic; None where nobody can tell.
Connections = Mapping[int, Traffic] | None


def connections() -> Mapping[int, Traffic] | None:
    """Every TCP connection of this network namespace, by its inode; None where the kernel does not say."""
    try:
        return dict(entry for family in (socket.AF_INET, socket.AF_INET6) for entry in _of_family(family))
    except OSError:
        return None


def of_process(pid: int, known: Mapping[int, Traffic] | None) -> Connections:
    """Those of `known` that a process holds. Raises `ProcessLookupError` where it is gone."""
    try:
        if _namespace(pid) != _namespace(os.getpid()):
            return {0: _of_devices(pid)}
        if known is None:
            return None
        return {inode: known[inode] for inode in _inodes(pid) if inode in known}
    except FileNotFoundError:
        raise ProcessLookupError(f"process {pid} is gone") from None


def traffic_between(before: Connections, after: Connections) -> Traffic | None:
    """The traffic of the connections that are there at the end; one that was made in between counts whole, one that
    was closed not at all."""
    if before is None or after is None:
        return None
    none = Traffic(0, 0)
    received = sum(now.received - before.get(inode, none).received for inode, now in after.items())
    sent = sum(now.sent - before.get(inode, none).sent for inode, now in after.items())
    return Traffic(received, sent)


def _namespace(pid: int) -> int:
    return (_PROC / str(pid) / "ns" / "net").stat().st_ino


def _of_devices(pid: int) -> Traffic:
    """The bytes that a process's namespace received and sent by all its network devices except the loopback."""
    lines = (_PROC / str(pid) / "net" / "dev").read_text().splitlines()[2:]
    counted = [line.partition(":")[2].split() for line in lines if not line.strip().startswith("lo:")]
    return Traffic(sum(int(words[0]) for words in counted), sum(int(words[8]) for words in counted))


def _inodes(pid: int) -> Iterator[int]:
    for name in os.listdir(_PROC / str(pid) / "fd"):  # noqa: PTH208 - a name is all that is needed, for each of many
        try:
            target = os.readlink(f"{_PROC}/{pid}/fd/{name}")  # noqa: PTH115
        except FileNotFoundError:  # closed in between
            continue
        if target.startswith("socket:["):
            yield int(target[8:-1])


def _of_family(family: int) -> Iterator[tuple[int, Traffic]]:
    """Raises `OSError`."""
    every_state = 0xFFFFFFFF
    question = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, _EXTENSION_INFO, 0, every_state)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _DUMP, 1, 0) + question)
        while True:
            for kind, message in _messages(kernel.recv(_ANSWER_BYTES_MAX)):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", message)[0], "sock_diag")
                if (traffic := _traffic(message)) is not None:
                    yield struct.unpack_from("=I", message, _INODE_AT)[0], traffic


def _messages(answer: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each message in what one read gave."""
    at = 0
    while at < len(answer):
        length, kind, *_ = _HEADER.unpack_from(answer, at)
        yield kind, answer[at + _HEADER.size : at + length]
        at += _aligned(length)


def _traffic(message: bytes) -> Traffic | None:
    """The kernel's `tcp_info` among a message's attributes; None where there is none, as for a listener."""
    at = _MESSAGE_BYTES
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        info = message[at + _ATTRIBUTE.size : at + length]
        if kind == _EXTENSION_INFO and len(info) >= _ACKED_AT + _ACKED_AND_RECEIVED.size:
            acked, received = _ACKED_AND_RECEIVED.unpack_from(info, _ACKED_AT)
            return Traffic(received, acked)
        at += _aligned(length)
    return None


def _aligned(length: int) -> int:
    return (length + 3) & ~3
