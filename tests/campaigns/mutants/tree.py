"""A copy of the program and its tests, in which one mutant at a time lives. Nothing is ever changed in place."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from tests.campaigns.mutants.mutant import MistakeInList, Mutant

SAID_CHARACTERS_MAX = 3_000
IMPORTS_S_MAX = 60.0
# Ends at the first test that fails, in the order of the files, with the same examples each time.
PYTEST = (
    *("-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("--hypothesis-seed=0", "--timeout=60"),
)


class Stopped(Exception):
    """The campaign ends before its time."""


class Outcome(NamedTuple):
    """Of one run of tests: whether they passed, the one that did not, and what was said."""

    passed: bool
    failed: str
    said: str
    seconds: float


class Tree:
    def __init__(self, source: Path, folder: Path) -> None:
        """Copy everything of `source` that is or would be under version control."""
        self._root, self._temporary = folder / "tree", folder / "tmp"
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._stopped = False
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True).stdout
        for name in names.split("\0"):
            if name and (source / name).is_file():
                (self._root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / name, self._root / name)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """With the mutant in it. Raises `MistakeInList`."""
        path = self._root / mutant.file
        whole = path.read_text(encoding="utf-8")
        changed = mutant.of(whole)
        try:
            self._write(path, changed)
            yield
        finally:
            self._write(path, whole)

    def _write(self, path: Path, content: str) -> None:
        path.write_text(content, encoding="utf-8")
        # Compiled files are told from stale ones by size and second, in which a mutant may well be like the original.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def check(self, packages: Sequence[str]) -> None:
        """See that Python takes the packages from here. Raises `MistakeInList`."""
        program = "import sys; print(*[__import__(name).__path__[0] for name in sys.argv[1:]], sep='\\n')"
        code, said = self._run(("-c", program, *packages), IMPORTS_S_MAX)
        if code != 0 or [Path(place) for place in said.splitlines()] != [self._root / name for name in packages]:
            raise MistakeInList(f"the tests would not test the copy in {self._root}, but\n{said}")

    def test(self, tests: Sequence[str], within_s: float) -> Outcome:
        """Run tests. What does not end in time has failed. Raises `MistakeInList` where nothing could be tested."""
        begin = monotonic()
        code, said = self._run((*PYTEST, f"--basetemp={self._temporary}", *tests), within_s)
        if code is not None and code > 1:  # nothing was collected, or pytest itself was asked for what it has not got
            raise MistakeInList(f"{' '.join(tests)}: pytest ended with {code}:\n{said[-SAID_CHARACTERS_MAX:]}")
        summary = said.rpartition("short test summary info")[2].splitlines()
        lines = [line.split(" - ")[0] for line in summary if line.startswith(("FAILED ", "ERROR "))]
        failed = lines[0].split(" ", 1)[1] if lines else f"ended with {code}" if code else "did not end"
        return Outcome(code == 0, failed, said[-SAID_CHARACTERS_MAX:], monotonic() - begin)

    def _run(self, arguments: Sequence[str], within_s: float) -> tuple[int | None, str]:
        """Exit code, or None where it did not end in time, and output."""
        environment = {**os.environ, "PYTHONPATH": str(self._root), "PYTHONDONTWRITEBYTECODE": ""}
        environment.pop("PYTHONPYCACHEPREFIX", None)
        with self._lock:
            if self._stopped:
                raise Stopped
            self._process = process = subprocess.Popen(
                [sys.executable, *arguments], cwd=self._root, env=environment, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        said, late = "", False
        with process:
            try:
                said, _ = process.communicate(timeout=within_s)
            except subprocess.TimeoutExpired:
                late = True
            finally:
                self._end()  # whatever the tests started and did not end, too
        if self._stopped:
            raise Stopped
        return None if late else process.returncode, said

    def _end(self) -> None:
        """The tests under way and all that they started."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:  # all of them have ended by themselves
                    return

    def stop(self) -> None:
        """Run nothing more."""
        with self._lock:
            self._stopped = True
        self._end()
