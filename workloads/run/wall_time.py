"""The uses of a run's wall time, so that its own overhead shows beside its measurements."""

from __future__ import annotations

from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

# Timed windows; warm-ups, whole; audits; clusters and clients, started and stopped; and the rest of each trial: topics,
# connections, groups, raw records.
PARTS: Final = ("windows", "warm-ups", "audits", "clusters", "between")


class Spent:
    """Adds up seconds in `total`, which an earlier part of the run may have begun."""

    def __init__(self, total: MutableMapping[str, float]) -> None:
        self._total = total
        for part in PARTS:
            total.setdefault(part, 0.0)

    def add(self, part: str, seconds: float) -> None:
        self._total[part] = round(self._total[part] + seconds, 3)

    def add_visit(self, seconds: float, windows_s: float, audit_s: float) -> None:
        """`seconds` of trials whose windows took turns, and whose audits ran side by side."""
        self.add("windows", windows_s)
        self.add("audits", audit_s)
        self.add("between", max(0.0, seconds - windows_s - audit_s))

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Count the time that passes here."""
        began = monotonic()
        try:
            yield
        finally:
            self.add(part, monotonic() - began)

    @contextmanager
    def beside_trials(self, part: str) -> Iterator[None]:
        """Count the time that passes here and is not counted elsewhere."""
        began, counted = monotonic(), sum(self._total.values())
        try:
            yield
        finally:
            self.add(part, monotonic() - began - (sum(self._total.values()) - counted))


def described(total: Mapping[str, float]) -> str:
    """How long it was and each part's share; empty where nothing was run."""
    whole = sum(total.values())
    if not whole:
        return ""
    return f"{whole:,.0f} s, " + ", ".join(f"{part} {total[part] / whole:.0%}" for part in PARTS)
