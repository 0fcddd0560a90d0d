"""A real sshd on loopback addresses, with keys and a port of its own: other hosts, as far as ssh can tell."""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from subprocess import DEVNULL

from tests.integration.processes.running import eventually
from workloads.processes.ports import free_ports

HOSTS = ("127.0.0.2", "127.0.0.3")
# Where Debian's sshd wants to find an empty folder before it starts.
PRIVILEGE_FOLDER = Path("/run/sshd")
# Nobody listens on the loopback interface, so the key exchange may be the one that takes the least time.
QUICK = "KexAlgorithms curve25519-sha256\n"


def found() -> str | None:
    """The server's path, which it wants to be started by; None where there is none."""
    return which("sshd", path="/usr/sbin:/sbin:/usr/bin:/usr/local/sbin")


@contextmanager
def serving(folder: Path, apart: Path) -> Iterator[Path]:
    """While it serves: the configuration for ssh, with which HOSTS are reached.

    For whom it lets in, the folder `apart` is on a disk of its own, so that nothing gets there but through ssh; unless
    this is not root, who alone may mount.
    """
    program = found()
    assert program is not None
    PRIVILEGE_FOLDER.mkdir(exist_ok=True)
    (port,) = free_ports(1)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    known = (folder / "host.pub").read_text()
    (folder / "known").write_text("".join(f"[{host}]:{port} {known}" for host in HOSTS))
    (folder / "sshd_config").write_text(
        "".join(f"ListenAddress {host}:{port}\n" for host in HOSTS)
        + f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPidFile none\nStrictModes no\nUsePAM no\n"
        + f"MaxStartups 100\n{QUICK}"
    )
    (folder / "ssh_config").write_text(
        f"Host 127.0.0.*\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {folder}/user\n"
        f"  UserKnownHostsFile {folder}/known\n  {QUICK}"
    )
    serve = [program, "-D", "-f", str(folder / "sshd_config")]
    if os.geteuid() == 0:
        mounted = 'mount -t tmpfs brokerlab-test "$0" && exec "$@"'
        serve = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mounted, str(apart), *serve]
    server = subprocess.Popen(serve, stdin=DEVNULL, stderr=DEVNULL)
    try:
        asked = ["ssh", "-F", str(folder / "ssh_config"), "-o", "BatchMode=yes", HOSTS[0], "true"]
        eventually(
            lambda: subprocess.run(asked, stdin=DEVNULL, stderr=DEVNULL, check=False).returncode == 0, "it answers"
        )
        yield folder / "ssh_config"
    finally:
        server.terminate()
        server.wait()
