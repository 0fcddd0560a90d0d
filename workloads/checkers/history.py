"""Whether the history of operations allows what the brokers hold and what was read.

A send that ended with `ok` is stored, one that ended with `fail` is not, and one whose end is `unknown` may be either.
A message that was read had been sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from workloads.checkers.api import finding
from workloads.clients.drivers.api import OK
from workloads.clients.history import FAIL, READ, SEND

if TYPE_CHECKING:
    import pyarrow as pa

    from workloads.checkers.api import Evidence
    from workloads.clients.client_files import Ids

_PREFIX: Final = "by the history, "


def check_history(evidence: Evidence) -> list[str]:
    """Nothing acknowledged is lost, nothing refused for certain is stored, nothing is read that was never sent."""
    if (history := evidence.history) is None:
        return []
    findings = []
    refused = _ids(history, SEND, FAIL)
    for partition in sorted({*evidence.stored, *_column(history, "partition").tolist()} - {-1}):
        stored = evidence.stored.get(partition, np.empty(0, np.uint64))
        acknowledged = _ids(history, SEND, OK, partition)
        said = [
            *finding("acknowledged are not stored", np.setdiff1d(acknowledged, stored)),
            *finding("refused for certain are stored", np.intersect1d(refused, stored)),
        ]
        findings += [f"{_PREFIX}partition {partition}: {each}" for each in said]
    unsent = np.setdiff1d(_ids(history, READ, OK), _ids(history, SEND))
    return findings + [f"{_PREFIX}{each}" for each in finding("were read that nobody sent", unsent)]


def _column(history: pa.Table, name: str) -> np.ndarray:
    return np.asarray(history.column(name).to_numpy())


def _ids(history: pa.Table, operation: str, outcome: str | None = None, partition: int | None = None) -> Ids:
    """The messages of these operations."""
    import pyarrow.compute as pc

    chosen = pc.equal(history["operation"], operation)
    for name, value in (("outcome", outcome), ("partition", partition)):
        if value is not None:
            chosen = pc.and_(chosen, pc.equal(history[name], value))
    rows = history.filter(chosen)
    first, messages = _column(rows, "first").astype(np.uint64), _column(rows, "messages").astype(np.int64)
    # Each row stands for consecutive ids: repeat its first, and add the place in the row.
    begins = np.repeat(np.cumsum(messages) - messages, messages)
    return np.repeat(first, messages) + (np.arange(len(begins)) - begins).astype(np.uint64)
