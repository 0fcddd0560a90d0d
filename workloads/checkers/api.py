"""The input of a checker, and its verdict.

`stored` is read from the brokers' disks after the timed window by a process of its own, not through the path that was
measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from workloads.clients.drivers.api import COUNTER_BITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from workloads.clients.client_files import Ids

EXAMPLES_MAX: Final = 3
_COUNTER_MASK: Final = np.uint64((1 << COUNTER_BITS) - 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence on a trial's messages, by partition: `acknowledged` in any order, `stored` in the log's order,
    `consumed` in the consumers'.

    Where `targets` say how many messages of each partition were to be consumed, only so many must have been: the rest
    may be consumed or not, but without a gap.
    """

    sent: int
    acknowledged: Mapping[int, Ids]
    stored: Mapping[int, Ids]
    consumed: Mapping[int, Ids]
    wrong_payloads: int = 0
    targets: Mapping[int, int] | None = None
    history: pa.Table | None = None  # `workloads.results.history_schema`; None where the clients wrote none

    def counts(self) -> dict[str, int]:
        """Messages, as a trial's row has them."""
        found = {"acknowledged": self.acknowledged, "stored": self.stored, "consumed": self.consumed}
        return {"sent": self.sent, **{name: sum(map(len, ids.values())) for name, ids in found.items()}}


class Checker(Protocol):
    def __call__(self, evidence: Evidence) -> Sequence[str]:
        """Why the trial may not be believed, a line for each reason; empty where nothing speaks against it."""


def finding(what: str, ids: Ids) -> list[str]:
    """The line of some messages, with the first of them as examples; none where there are no messages."""
    if not len(ids):
        return []
    examples = ", ".join(f"{int(i >> np.uint64(COUNTER_BITS))}.{int(i & _COUNTER_MASK)}" for i in ids[:EXAMPLES_MAX])
    more = ", ..." if len(ids) > EXAMPLES_MAX else ""
    return [f"{len(ids)} messages {what} ({examples}{more})"]
