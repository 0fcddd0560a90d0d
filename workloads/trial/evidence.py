"""After the windows: what a trial's clients and brokers left is gathered, checked, and put into its record."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from workloads.checkers.api import Evidence
from workloads.checkers.audit import audit
from workloads.checkers.history import check_history
from workloads.clients.client_files import read_ids, read_requests, with_trial_id
from workloads.clients.history import read_histories
from workloads.faults.script import CONSUMPTION
from workloads.measure.end_to_end import end_to_end
from workloads.systems.read_back import read_back

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workloads.checkers.api import Checker
    from workloads.clients.client_files import Ids
    from workloads.systems.api import System
    from workloads.trial.record import TrialRecord

CHECKERS: Final[tuple[Checker, ...]] = (audit, check_history)


async def examine(
    record: TrialRecord,
    producers: Sequence[Path],
    consumers: Sequence[Path],
    stored: Mapping[int, Ids],
    targets: Mapping[int, int],
    *,
    history: bool,
) -> list[str]:
    """Fill the record with what the clients wrote down, and return what speaks against the trial. `producers` and
    `consumers` are what the names of their files begin with."""
    evidence = Evidence(
        record.sent,
        _joined([read_ids(out) for out in producers]),
        stored,
        _joined([read_ids(out) for out in consumers]),
        record.wrong_payloads,
        targets,
        read_histories([*producers, *consumers]) if history else None,
    )
    findings = [f"{count} messages: {why}" for why, count in record.failed.items()]
    length = record.trial.length.messages
    wanted = None if length is None else length * sum(window.at.window != CONSUMPTION for window in record.windows)
    if wanted is not None and wanted != evidence.sent:
        findings.append(f"{evidence.sent} messages were sent, not {wanted}")
    for check in CHECKERS:
        findings += await asyncio.to_thread(check, evidence)
    record.audited = evidence.counts()
    record.requests = read_requests([*producers, *consumers], record.trial.id)
    record.latency = await asyncio.to_thread(end_to_end, record.trial.id, producers, consumers, record.windows)
    record.history = None if evidence.history is None else with_trial_id(evidence.history, record.trial.id)
    return findings


async def stored_messages(system: System, topic: str, into: Path) -> Mapping[int, Ids]:
    """The messages on the leaders' disks; where nobody can read those, the result of a fetch of everything."""
    if (found := await system.stored(topic, into)) is not None:
        return found
    ends = await system.end_offsets(topic)
    return await asyncio.to_thread(read_back, system.bootstrap("kafka"), topic, ends)


def _joined(parts: Sequence[Mapping[int, Ids]]) -> dict[int, Ids]:
    import numpy as np

    partitions = sorted({partition for part in parts for partition in part})
    return {p: np.concatenate([part[p] for part in parts if p in part]) for p in partitions}
