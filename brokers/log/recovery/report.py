"""The findings of a start in a log's directory, and their lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from brokers.notices import Notices

_LINES_MAX: Final = 20  # of one kind, for one log


@dataclass(frozen=True, slots=True)
class Damage:
    """Offsets from `begin` up to but not including `end` cannot be served: `where` their bytes are, or were."""

    begin: int
    end: int
    where: str

    @property
    def missing(self) -> bool:
        """Whether there are no bytes at all."""
        return self.where.startswith("nothing ")


@dataclass(frozen=True, slots=True)
class Cut:
    """Bytes cut behind the log's end. `kept_in` is the file that holds them now, None for none."""

    offset: int
    bytes: int
    name: str
    kept_in: str | None


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The findings of a start. `began_at` is where the log began before, if it begins later now.

    `distrusted` are small files whose content was not what this program writes, and that were made again.
    """

    clean: bool
    scanned_bytes: int
    cuts: tuple[Cut, ...] = ()
    damaged: tuple[Damage, ...] = ()
    missing_front: Damage | None = None
    distrusted: tuple[str, ...] = ()

    def tell(self, directory: Path, notices: Notices) -> None:
        """Say all of it, one line each."""
        for cut in self.cuts:
            kept = "an incomplete last batch" if cut.kept_in is None else f"kept in {cut.kept_in}"
            notices.tell(
                f"{directory}: {cut.bytes} bytes of {cut.name} behind offset {cut.offset} were cut off ({kept})",
                cut_bytes=cut.bytes,
                files_kept_aside=int(cut.kept_in is not None),
            )
        if self.missing_front is not None:
            tell_damage(directory, notices, self.missing_front)
        for damage in self.damaged[:_LINES_MAX]:
            tell_damage(directory, notices, damage)
        more = self.damaged[_LINES_MAX:]
        if more:
            offsets = sum(damage.end - damage.begin for damage in more)
            line = f"{directory}: {len(more)} more ranges, {offsets} offsets, from {more[0].begin} on cannot be read"
            notices.tell(line, damaged_offsets=offsets)
        for name in self.distrusted:
            notices.tell(f"{directory}: {name} is damaged; it is made again", files_made_again=1)


def tell_damage(directory: Path, notices: Notices, damage: Damage) -> None:
    """Say that offsets cannot be served."""
    offsets = damage.end - damage.begin
    if damage.missing:
        line = f"offsets {damage.begin} to {damage.end - 1} are missing ({damage.where})"
        notices.tell(f"{directory}: {line}", missing_offsets=offsets)
    else:
        line = f"offsets {damage.begin} to {damage.end - 1} are damaged on disk ({damage.where}); the bytes stay there"
        notices.tell(f"{directory}: {line}", damaged_offsets=offsets)
