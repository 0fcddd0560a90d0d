"""The links between places: `python -m workloads.topology.links`, told on stdin which places there are.

It makes one network namespace for each place. All are wired to one bridge; where two places are to be apart, their
packets go through this process instead, which holds each one for half the round trip. Nothing has a name in the
system and nothing is written down: the namespaces are this process's open files, and the devices are in them, so all of
it is gone as soon as this process and those in the namespaces are, however they end.

    runner -> links   [{"name": "broker-1", "address": "198.18.0.1", "far": {"198.18.0.2": 250000}}, ...]
    links -> runner   {"ready": {"broker-1": 7, ...}, "user": null}
                      each place's namespace, as a file of this process; and that of the user, where one had to be made
                      because the one who runs this is not root
                      {"failed": "why"}                   and it ends
    runner -> links   any line
    links -> runner   {"carried": {"198.18.0.1": {"198.18.0.2": 12}}, "dropped": 0}   packets that were held, so far

It ends when its standard input does.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import subprocess
import sys
from dataclasses import dataclass
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final

from workloads.topology import kernel
from workloads.topology.delay import DelayLine
from workloads.topology.places import PREFIX_BITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.topology.places import Place

WIRE: Final = "wire"  # to the bridge
FAR: Final = "far"  # through this process
# As large as can be, as on the loopback interface: fewer packets to carry for the same bytes.
FAR_MTU_BYTES: Final = 65_535
FAR_QUEUE_PACKETS: Final = 10_000
READ_PACKETS_MAX: Final = 64  # from one place before the others get their turn
_DESTINATION: Final = slice(16, 20)  # of an IPv4 header
_STDIN: Final = 0


@dataclass(slots=True)
class _Way:
    """From a place to a far peer."""

    out: int  # the peer's device
    delay_ns: int
    packets: int = 0


class Links:
    """Places and what lies between them."""

    def __init__(self, places: Sequence[Place]) -> None:
        """Raises `OSError`, and `subprocess.CalledProcessError` with what `ip` said."""
        self._line = DelayLine()
        self._devices: dict[str, int] = {}  # address of a place with far peers -> its device
        home = kernel.namespace("net")
        self.user = _be_allowed()
        hub = kernel.namespace("net")
        _ip("link add hub type bridge", "link set hub up")
        self.namespaces = {place.name: self._made(number, place, hub) for number, place in enumerate(places)}
        kernel.enter(hub)
        _ip(*(line for n in range(len(places)) for line in (f"link set p{n} master hub", f"link set p{n} up")))
        if self.user is None:  # else there is no way back, nor a need: where its counters are read is all it changes
            kernel.enter(home)
        os.close(home)
        self._ways = {
            self._devices[place.address]: {
                socket.inet_aton(peer): _Way(self._devices[peer], one_way_ns) for peer, one_way_ns in place.far.items()
            }
            for place in places
            if place.far
        }

    def _made(self, number: int, place: Place, hub: int) -> int:
        """A place's namespace, wired; its far peers are routed through a device of this process's."""
        kernel.unshare(kernel.CLONE_NEWNET)
        lines = [
            "link set lo up",
            f"link add {WIRE} type veth peer name p{number} netns /proc/{os.getpid()}/fd/{hub}",
            f"link set {WIRE} up",
            f"address add {place.address}/{PREFIX_BITS} dev {WIRE}",
        ]
        if place.far:
            self._devices[place.address] = kernel.tunnel(FAR)
            lines.append(f"link set {FAR} mtu {FAR_MTU_BYTES} txqueuelen {FAR_QUEUE_PACKETS} up")
            lines += [f"route add {peer}/32 dev {FAR} src {place.address}" for peer in place.far]
        _ip(*lines)
        return kernel.namespace("net")

    def carry(self) -> None:
        """Carry packets until standard input ends; answer each of its lines with what was carried so far."""
        watched = [_STDIN, *self._ways]
        line = self._line
        while True:
            next_ns = line.next_due_ns()
            wait_s = None if next_ns is None else max(0, next_ns - monotonic_ns()) / 1e9
            for device in select.select(watched, [], [], wait_s)[0]:
                if device != _STDIN:
                    self._take(device)
                elif os.read(_STDIN, 65_536):
                    _say(**self._report())
                else:
                    return
            for out, packet in line.due(monotonic_ns()):
                self._give(out, packet)

    def _take(self, device: int) -> None:
        """Read what a place sends. Packets that are not for a far peer are its kernel's talk, such as IPv6's."""
        ways = self._ways[device]
        for _ in range(READ_PACKETS_MAX):
            try:
                packet = os.read(device, FAR_MTU_BYTES)
            except BlockingIOError:
                return
            if way := ways.get(packet[_DESTINATION]):
                way.packets += 1
                self._line.put(monotonic_ns(), way.delay_ns, way.out, packet)

    def _give(self, out: int, packet: bytes) -> None:
        try:
            os.write(out, packet)
        except BlockingIOError:  # the place takes no more; TCP sends it again, as after any loss
            self._line.dropped += 1

    def _report(self) -> dict[str, Any]:
        places = {device: address for address, device in self._devices.items()}
        carried = {
            places[device]: {socket.inet_ntoa(peer): way.packets for peer, way in ways.items()}
            for device, ways in self._ways.items()
        }
        return {"carried": carried, "dropped": self._line.dropped}


def _be_allowed() -> int | None:
    """Be in a new network namespace; in one of a user who is root there, where this one is not. The latter, opened."""
    try:
        kernel.unshare(kernel.CLONE_NEWNET)
    except PermissionError:
        kernel.become_root_within()
        kernel.unshare(kernel.CLONE_NEWNET)
        return kernel.namespace("user")
    return None


def _ip(*lines: str) -> None:
    """Have `ip` do these in the namespace that this process is in."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), check=True, capture_output=True, text=True)


def _say(**message: object) -> None:
    print(json.dumps(message), flush=True)


def main() -> int:
    from workloads.topology.places import Place

    # Unbuffered, for what comes later is watched with select.
    places = [Place(**place) for place in json.loads(_first_line())]
    try:
        links = Links(places)
        kernel.be_on_time()
    except FileNotFoundError as error:
        _say(failed=f"{error.filename} is not there (`ip` comes with iproute2)")
        return 1
    except OSError as error:
        _say(failed=error.strerror)
        return 1
    except subprocess.CalledProcessError as error:
        _say(failed=f"ip: {error.stderr.strip()}")
        return 1
    _say(ready=links.namespaces, user=links.user)
    gc.freeze()
    gc.disable()  # what is made here is freed by count; a pause would delay packets
    links.carry()
    return 0


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n") and (more := os.read(_STDIN, 65_536)):
        line += more
    return line


if __name__ == "__main__":
    sys.exit(main())
