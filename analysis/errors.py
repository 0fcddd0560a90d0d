"""What can go wrong in an analysis. Nothing in the raw records is ever changed, so every error here is definite."""

from __future__ import annotations


class AnalysisError(Exception):
    """Root of this package's errors: the analysis did not happen, and what was there before still is."""

    exit_code = 1


class InputError(AnalysisError):
    """The user can mend it: a wrong folder, damaged or mixed records, no Java. The message says what and where."""

    exit_code = 2


class EngineError(AnalysisError):
    """Spark did not start or failed in a way that the records do not explain."""
