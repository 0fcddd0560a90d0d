"""README's commands on a machine that has nothing but Python, make and git: `make bare`, as root on Debian.

debootstrap makes the root file system (minbase), in which the commands run as they stand in README, from a clone of
HEAD: once with an /etc/hosts, once without one, each time under a host name that no name server knows. Of the caller it
has pip's configuration, certificates and name servers, nothing else.

The commands of a situation see a process table, mounts and a host name of their own, which end with them; so nothing is
left, whatever ends this process, but for its folder where that is SIGKILL.
"""

from __future__ import annotations

import argparse
import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from types import FrameType
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("python3", "python3-venv", "make", "git")
HOST_NAME: Final = "bare-machine"
HOME: Final = "/root"
CHECKOUT: Final = f"{HOME}/brokerlab"
HOSTS: Final = f"127.0.0.1 localhost\n127.0.1.1 {HOST_NAME}\n"
TARGETS: Final = ("quick", "test")
_PIP_FILES: Final = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")
# How a caller says where packages come from, and which certificates and proxies lead there.
_HANDED_ON: Final = re.compile(r"PIP_.*|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(?i:(https?|no)_proxy)")
_SOURCES: Final = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources")
_NEEDED: Final = {
    "debootstrap": "debootstrap",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "chroot": "coreutils",
    "git": "git",
}
_TIED: Final = ("setpriv", "--pdeathsig", "KILL")  # what it starts dies with this process
# $0 is the root; what follows up to -- are folders of the caller's, and behind it is the command.
_ENTER: Final = f"""set -e
hostname {HOST_NAME}
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount --rbind /sys "$0/sys"
while [ "$1" != -- ]; do mkdir -p "$0$1"; mount --bind "$1" "$0$1"; shift; done
shift
exec chroot "$0" "$@"
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    situation: str
    command: str
    code: int
    seconds: float
    last_line: str

    def __str__(self) -> str:
        ended = "well" if self.code == 0 else f"with {self.code}"
        return f"{self.situation}: {self.command} ended {ended} after {self.seconds:.0f} s: {self.last_line}"


class Root:
    """A root file system, and what the caller hands on to commands in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment = {name: value for name, value in os.environ.items() if _HANDED_ON.fullmatch(name)}
        self.folders: list[str] = []

    def furnish(self) -> None:
        """Bring in a clone of HEAD, the name servers, and what pip is told where."""
        clone = ["git", "clone", "--quiet", "--depth", "1", REPOSITORY.as_uri(), f"{self.path}{CHECKOUT}"]
        subprocess.run(clone, check=True)
        self._bring(Path("/etc/resolv.conf"))
        for named in _PIP_FILES:
            if (file := Path(named).expanduser()).is_file():
                self._bring(file, Path(named.replace("~", HOME)))
                self._bring_named(file.read_text())
        self._bring_named("\n".join(self.environment.values()))

    def _bring_named(self, text: str) -> None:
        """The files and folders of this machine that a setting names."""
        for path in map(Path, re.findall(r"(?:^|(?<=[\s=]))(?:file://)?(/[^\s:]+)", text)):
            if path.is_file():
                self._bring(path)
            elif path.is_dir() and str(path) not in self.folders:
                self.folders.append(str(path))

    def _bring(self, file: Path, place: Path | None = None) -> None:
        there = self.path / str(place or file).lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        there.unlink(missing_ok=True)
        shutil.copyfile(file, there)

    def hosts(self, text: str | None) -> None:
        file = self.path / "etc" / "hosts"
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)

    def run(self, situation: str, command: str) -> Outcome:
        """Run a shell's line in the checkout, show what it says, and tell what came of it."""
        inside = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": HOME, "LANG": "C.UTF-8", **self.environment}
        told = [f"{name}={value}" for name, value in variables.items()]
        line = f"cd {CHECKOUT} && exec {command}"
        enter = [*inside, "sh", "-c", _ENTER, str(self.path), *self.folders, "--"]
        print(f"--- {situation}: {command}", flush=True)
        began, last_line = monotonic(), ""
        with subprocess.Popen(
            [*_TIED, *enter, "env", "-i", *told, "sh", "-c", line],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        ) as process:  # fmt: skip
            assert process.stdout is not None
            try:
                for said in process.stdout:
                    print(said, end="", flush=True)
                    last_line = said.strip() or last_line
            except BaseException:  # this process was told to end
                process.kill()
                raise
        return Outcome(situation, command, process.returncode, monotonic() - began, last_line)


def bootstrap(path: Path, suite: str, mirror: str | None) -> None:
    """Raises CalledProcessError, with debootstrap's log in the folder."""
    print(f"--- a root file system of {suite}, by debootstrap", flush=True)
    options = ["--variant=minbase", f"--include={','.join(PACKAGES)}"]
    command = ["debootstrap", *options, suite, str(path), *([mirror] if mirror else [])]
    subprocess.run([*_TIED, *command], check=True, stdout=subprocess.DEVNULL)


def suite_of(release: str) -> str:
    """What this machine runs, from its os-release; any Debian whose Python is new enough would do."""
    parser = configparser.ConfigParser()
    parser.read_string(f"[release]\n{release}")
    found = {name: value.strip('"') for name, value in parser["release"].items()}
    return found.get("version_codename", "bookworm") if found.get("id") == "debian" else "bookworm"


def mirror_of(sources: str) -> str | None:
    """Where this machine has its own packages from, which it reaches; None where it does not say."""
    found = re.search(r"^(?:deb(?:-src)?\s+(?:\[[^]]*\]\s+)?|URIs:\s*)(\w+://\S+)", sources, re.MULTILINE)
    return found[1] if found else None


def commands(root: Root, targets: list[str]) -> Iterator[Outcome]:
    for situation, hosts in (("with /etc/hosts", HOSTS), ("without /etc/hosts", None)):
        root.hosts(hosts)
        for target in targets:
            yield root.run(situation, f"make {shlex.quote(target)}")


def missing() -> str:
    """What keeps this machine from it, and what mends it; empty where nothing does."""
    if os.geteuid() != 0:
        return "root alone may enter another root file system: run it as root"
    lacking = [f"{name} is not there (Debian: apt-get install {of})" for name, of in _NEEDED.items() if not which(name)]
    return "; ".join(lacking)


def which(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _texts(paths: tuple[str, ...]) -> str:
    return "\n".join(path.read_text() for path in map(Path, paths) if path.is_file())


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.bare", description="README's commands, bare.")
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help="default: quick test")
    parser.add_argument("--suite", help="of Debian; default: this machine's")
    parser.add_argument("--mirror", help="default: where this machine has its packages from")
    parser.add_argument("--base", type=Path, metavar="DIR", help="keep debootstrap's root there, or take the one there")
    return parser.parse_args()


def main() -> int:
    options = _parsed()
    if said := missing():
        print(f"bare: {said}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _end)
    with TemporaryDirectory(prefix="brokerlab-bare-") as folder:
        path = Path(folder) / "root"
        base: Path = options.base or path
        if not base.exists():
            suite = options.suite or suite_of(_texts(("/etc/os-release",)))
            bootstrap(base, suite, options.mirror or mirror_of(_texts(_SOURCES)))
        if base != path:
            subprocess.run(["cp", "-a", str(base), str(path)], check=True)
        root = Root(path)
        root.furnish()
        outcomes = list(commands(root, options.targets))
    print("--- what came of it", *outcomes, sep="\n")
    return max(outcome.code != 0 for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
