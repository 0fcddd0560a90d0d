"""What to know before believing a comparison: a client that was the limit, disturbed windows, too few messages."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.findings import Findings, Found
from analysis.measures.saturation import saturated
from analysis.report.verdicts import family_of

_CLIENTS = ("producer", "consumer")
# A column of a window, and the word for it.
_MARKS = {"disturbed": "disturbed", "unsettled": "unsettled", "few": "with too few messages"}
Pair = tuple[str, str]


def of_family(found: Findings, pair: Pair, family: str) -> Iterable[str]:
    """The cautions of a pooled comparison."""
    bound = _client_bound(found, pair, family)
    cells = {row["cell"] for row in found.cells if family_of(row) == family}
    if bound:
        yield f"client-bound in {len(bound)} of {len(cells)} cells"
    windows = [row for row in found.windows if row["architecture"] in pair and _belongs(row, family)]
    counts = {word: sum(bool(row[column]) for row in windows) for column, word in _MARKS.items()}
    told = [f"{count} {word}" for word, count in counts.items() if count]
    if told:
        yield f"of {len(windows)} windows, {', '.join(told)}"


def _belongs(row: Found, family: str) -> bool:
    """Whether the rate of a window is of the family; that of streaming is the rate of consumption."""
    return family_of(row) == family and (family != "streaming" or row["role"] == "consumption")


def _client_bound(found: Findings, pair: Pair, family: str) -> set[str]:
    """The cells of a family in which a client of one of the two kept a core busy."""
    modes = {row["cell"]: row["mode"] for row in found.cells}
    return {
        cell
        for (name, cell, role), process in saturated(found).items()
        if name in pair
        and process in _CLIENTS
        and cell in modes
        and family_of({"mode": modes[cell], "role": role}) == family
    }


class OfCells:
    """The marks of single comparisons; what is the same for all of them is counted once."""

    def __init__(self, found: Findings) -> None:
        self._full = saturated(found)
        self._marks: dict[tuple[str, str, str], dict[str, int]] = {}
        self._windows: dict[tuple[str, str, str], int] = {}
        for row in found.windows:
            key = (row["architecture"], row["cell"], row["role"])
            self._windows[key] = self._windows.get(key, 0) + 1
            counts = self._marks.setdefault(key, dict.fromkeys(_MARKS, 0))
            for column in _MARKS:
                counts[column] += bool(row[column])

    def marks(self, row: Found) -> str:
        """What is to be known of one ratio, or of one architecture's rate."""
        names = [row[name] for name in ("architecture", "against") if name in row]
        keys = [(name, row["cell"], row["role"]) for name in names]
        busy = [f"{self._full[key]} of {key[0]}" for key in keys if key in self._full]
        parts = [_busy(busy)] if busy else []
        windows = sum(self._windows.get(key, 0) for key in keys)
        for column, word in _MARKS.items():
            marked = sum(self._marks.get(key, {}).get(column, 0) for key in keys)
            if marked:
                parts.append(f"{marked} of {windows} windows {word}")
        return "; ".join(parts)


def _busy(processes: list[str]) -> str:
    """A client that keeps a core busy says what clients can do; a server that does is part of the answer."""
    clients = [one for one in processes if one.split(" ")[0] in _CLIENTS]
    return f"client-bound ({', '.join(clients)})" if clients else f"busy ({', '.join(processes)})"
