"""Which folder a run writes to, and that no other run writes there at the same time."""

from __future__ import annotations

import fcntl
import os
import re
from typing import TYPE_CHECKING, Final

from workloads.errors import UserError
from workloads.results import LOCK, ResultsFolder

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from workloads.spec.plan import Plan

LATEST: Final = "latest"


class FolderInUse(UserError):
    """Another run writes into the folder."""


def choose(parent: Path, plan: Plan) -> Path:
    """The newest numbered folder of this plan if its run was interrupted, else the next number.

    Raises `UserError` where the newest holds something and no manifest."""
    number = _newest_number(parent, plan.name)
    if number:
        newest = parent / f"{plan.name}-{number}"
        manifest = ResultsFolder(newest).manifest_to_go_on_with()
        if manifest is None or (manifest["spec_hash"] == plan.spec_hash and manifest["ended"] is None):
            return newest
    return parent / f"{plan.name}-{number + 1}"


def newest(parent: Path, name: str) -> Path:
    """The newest numbered folder of a plan of this name. Raises `UserError` where there is none."""
    number = _newest_number(parent, name)
    if not number:
        raise UserError(f"there is no run {parent / name}-N to add tries to; name its folder with --out")
    return parent / f"{name}-{number}"


def _newest_number(parent: Path, name: str) -> int:
    """0 where there is none."""
    pattern = re.compile(re.escape(name) + r"-(\d+)")
    return max((int(match[1]) for path in parent.glob("*") if (match := pattern.fullmatch(path.name))), default=0)


class RunFolder:
    """A results folder while a run owns it. Nothing is put where something lies that is not a run's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results = ResultsFolder(path)
        self._lock = -1

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.results.manifest_to_go_on_with()
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"{self.path} cannot be a results folder: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise FolderInUse(f"another run is writing into {self.path}; name another folder with --out") from None
        return self

    def be_latest(self) -> None:
        """Let `latest` beside it point here."""
        link = self.path.parent / LATEST
        if link.is_symlink() or not link.exists():
            fresh = link.with_name(f".{LATEST}.{os.getpid()}")
            fresh.symlink_to(self.path.name)
            fresh.replace(link)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._lock)
