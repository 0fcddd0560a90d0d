"""Many comparisons at once: which of them may be believed together. Pure."""

from __future__ import annotations

from collections.abc import Sequence

FALSE_DISCOVERIES = 0.05


def survivors(probabilities: Sequence[float | None], share: float = FALSE_DISCOVERIES) -> list[bool]:
    """Which differences stand, so that at most this share of them is expected to be false (Benjamini and Hochberg).

    A comparison without a probability does not stand, and does not count.
    """
    known = sorted(value for value in probabilities if value is not None)
    bound = max((value for place, value in enumerate(known, 1) if value <= share * place / len(known)), default=-1.0)
    return [value is not None and value <= bound for value in probabilities]


def holm(probabilities: Sequence[float | None]) -> list[float | None]:
    """Probabilities that hold for all of these comparisons together (Holm)."""
    known = sorted((value, index) for index, value in enumerate(probabilities) if value is not None)
    adjusted: list[float | None] = [None] * len(probabilities)
    least = 0.0
    for place, (value, index) in enumerate(known):
        least = max(least, min(1.0, value * (len(known) - place)))
        adjusted[index] = least
    return adjusted
