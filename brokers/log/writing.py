"""Whether a log takes anything, and what a disk's refusal means for that.

A change that failed for want of space, handles or memory is refused, and the next one is tried. After any other the log
refuses all further ones until it is opened again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from brokers.log.errors import LogRefusesForNow, LogRefusesWrites
from brokers.log.files import is_passing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from brokers.notices import Notices


class Writing:
    """One log's. `refusal` says why it takes nothing more; None while it does."""

    __slots__ = ("_directory", "_notices", "refusal")

    def __init__(self, directory: Path, notices: Notices, refusal: str | None) -> None:
        self._directory = directory
        self._notices = notices
        self.refusal = refusal

    def end(self, reason: str, *, told: bool = False) -> str:
        """Refuse writes from now on; the whole reason. `told`: the process has said it for all its logs."""
        self.refusal = f"{self._directory} was closed for writing: {reason}"
        if told:
            self._notices.count(logs_closed_for_writing=1)
        else:
            self._notices.tell(self.refusal, logs_closed_for_writing=1)
        return self.refusal

    def prepare(self, what: str, change: Callable[[], None]) -> None:
        """Prepare an append; if the disk refuses, so does the log, and nothing was appended."""
        try:
            change()
        except OSError as error:
            self.refuse(f"cannot {what}", error)

    def refuse(self, what: str, error: OSError) -> NoReturn:
        """Nothing was appended: for now, where the reason may pass by itself, or until the log is opened again."""
        if is_passing(error):
            line = f"{self._directory}: {what}: {error.strerror}; writes are refused as long as that lasts"
            self._notices.tell_once(line, writes_refused_for_now=1)
            raise LogRefusesForNow(line) from error
        raise LogRefusesWrites(self.end(f"{what}: {error}")) from error
