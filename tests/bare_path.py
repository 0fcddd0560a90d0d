"""The machine as a bare one: a PATH on which the programs are missing that Brokerlab can do without.

A test that is marked neither `java` nor `machine` never sees them (`tests/conftest.py`), so one that comes to need one
fails at once; and those that are marked run without them too, by `make test-hidden`.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

# What a Debian lacks that has Python, make and git and nothing else. Java comes with the packages; the others are
# optional, and what needs them says so.
OPTIONAL: Final = (
    "java", "ssh", "ssh-keygen", "sshd", "kcat", "nft", "ip", "tc", "mvn", "ps", "gcc", "cc", "chromium",
    "chromium-browser", "google-chrome",
)  # fmt: skip
_VARIABLES: Final = ("PATH", "JAVA_HOME")


class Machine:
    """This process's environment, as the machine has it or as a bare machine would."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="brokerlab-bare-")
        self._own = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
        self._bare = {"PATH": bare_path(self._own.get("PATH", os.defpath), Path(self._folder.name))}

    def show(self, environment: MutableMapping[str, str], *, optional: bool) -> bool:
        """Show the optional programs, or hide them; tell whether that changed anything."""
        wanted = self._own if optional else self._bare
        if wanted == {name: environment[name] for name in _VARIABLES if name in environment}:
            return False
        for name in _VARIABLES:
            environment.pop(name, None)
        environment.update(wanted)
        return True

    def close(self) -> None:
        self._folder.cleanup()


def bare_path(path: str, into: Path) -> str:
    """The PATH with every folder that holds one of the programs replaced by links to everything else in it."""
    shown = []
    for number, name in enumerate(dict.fromkeys(path.split(os.pathsep))):
        folder = Path(name)
        if not any((folder / program).exists() for program in OPTIONAL):
            shown.append(name)
            continue
        links = into / str(number)
        links.mkdir()
        for program in folder.iterdir():
            if program.name not in OPTIONAL:
                (links / program.name).symlink_to(program.absolute())
        shown.append(str(links))
    return os.pathsep.join(shown)
