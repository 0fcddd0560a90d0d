"""Whether a trial balances: sent = acknowledged = stored = consumed, in order per partition, nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workloads.checkers.api import finding
from workloads.clients.drivers.api import COUNTER_BITS

if TYPE_CHECKING:
    from workloads.checkers.api import Evidence
    from workloads.clients.client_files import Ids


def audit(evidence: Evidence) -> list[str]:
    """Compare what was acknowledged, stored and consumed, partition by partition."""
    counts, targets = evidence.counts(), evidence.targets
    findings = []
    if counts["sent"] != counts["acknowledged"]:
        missing = counts["sent"] - counts["acknowledged"]
        findings.append(f"{missing} of {counts['sent']} messages sent were not acknowledged")
    by_partition = (evidence.acknowledged, evidence.stored, evidence.consumed)
    for partition in sorted(set().union(*by_partition)):
        of = [found.get(partition, np.empty(0, np.uint64)) for found in by_partition]
        target = None if targets is None else targets.get(partition, 0)
        findings += [f"partition {partition}: {found}" for found in _partition_findings(target, *of)]
    if evidence.wrong_payloads:
        findings.append(f"{evidence.wrong_payloads} messages were received with a payload that nobody sent")
    return findings


def _partition_findings(target: int | None, acknowledged: Ids, stored: Ids, consumed: Ids) -> list[str]:
    wanted = stored if target is None else stored[: max(target, _reach(stored, consumed))]
    if _balances(acknowledged, stored, consumed, wanted):
        return []
    findings = [
        *_difference("acknowledged and not stored", acknowledged, stored),
        *_difference("stored and not acknowledged", stored, acknowledged),
        *_difference("stored and not consumed", wanted, consumed),
        *_difference("consumed and not stored", consumed, stored),
        *_repeated("acknowledged", acknowledged),
        *_repeated("stored", stored),
        *_repeated("consumed", consumed),
    ]
    if not findings and not np.array_equal(wanted, consumed):
        findings.append("consumed in another order than stored")
    return findings + _disorder("stored", stored)


def _balances(acknowledged: Ids, stored: Ids, consumed: Ids, wanted: Ids) -> bool:
    """Whether there is nothing to find; far quicker than looking for each finding."""
    in_order = np.sort(stored)
    return (
        np.array_equal(consumed, wanted)
        and np.array_equal(np.sort(acknowledged), in_order)
        and bool((in_order[1:] > in_order[:-1]).all())
        and not _disorder("stored", stored)
    )


def _reach(stored: Ids, consumed: Ids) -> int:
    """How far into what is stored was consumed."""
    if np.array_equal(consumed, stored[: len(consumed)]):  # as it should be
        return len(consumed)
    places = np.nonzero(np.isin(stored, consumed))[0]
    return int(places[-1]) + 1 if len(places) else 0


def _difference(what: str, one: Ids, other: Ids) -> list[str]:
    return finding(what, np.setdiff1d(one, other))


def _repeated(what: str, ids: Ids) -> list[str]:
    values, times = np.unique(ids, return_counts=True)
    return finding(f"{what} more than once", values[times > 1])


def _disorder(what: str, ids: Ids) -> list[str]:
    """Messages behind a later one of the same producer."""
    behind = []
    producers = ids >> np.uint64(COUNTER_BITS)
    for producer in np.unique(producers):
        own = ids[producers == producer]
        behind.append(own[1:][own[1:] < own[:-1]])
    return finding(f"{what} out of their producer's order", np.concatenate(behind)) if behind else []
