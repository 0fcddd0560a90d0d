"""Latency from send to receipt, message by message: what producers noted of their sends, joined by the messages' ids
with what consumers noted of their receipts. One machine has one monotonic clock, so both ends agree.

Where messages leave at a fixed rate, the send is the moment at which it was meant to be: a client that falls behind
adds to the latency and does not hide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workloads.clients.client_files import read_ids, read_receipts, read_sends
from workloads.clients.drivers.api import COUNTER_BITS
from workloads.results import bucket_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workloads.clients.client_files import Ids, Pairs, Triples
    from workloads.trial.record import Window

KIND: Final = "end_to_end"
_COUNTER_MASK: Final = np.uint64((1 << COUNTER_BITS) - 1)


def end_to_end(
    trial_id: str, producers: Sequence[Path], consumers: Sequence[Path], windows: Sequence[Window]
) -> list[dict[str, Any]]:
    """Rows for `latency/`, one a window and consumer that noted receipts in it; `producers` in the order of their
    numbers."""
    sends = dict(enumerate(map(read_sends, producers)))
    rows = []
    for client, out in enumerate(consumers):
        ids, receipts = read_ids(out), read_receipts(out)
        for window in windows:
            found = [_latencies_ns(ids[each], receipts[each], sends, window) for each in receipts]
            if found and (histogram := _histogram(np.concatenate(found))):
                row = {"latency_index": list(histogram), "latency_count": list(histogram.values())}
                which = {"trial_id": trial_id, "client": client, "window_number": window.at.number, "kind": KIND}
                rows.append({**which, **row})
    return rows


def _latencies_ns(ids: Ids, receipts: Triples, sends: Mapping[int, Pairs], window: Window) -> Pairs:
    """For each message of a partition that a known producer sent, and that came while the window was open."""
    messages, came_ns, number = receipts.T
    inside = number == window.at.number
    if window.opened_ns is not None and window.closed_ns is not None:
        inside &= (came_ns >= window.opened_ns) & (came_ns < window.closed_ns)
    ids, came_ns = ids[np.repeat(inside, messages)], np.repeat(came_ns[inside], messages[inside])
    producers, counters = ids >> np.uint64(COUNTER_BITS), (ids & _COUNTER_MASK).astype(np.int64)
    found = [np.empty(0, np.int64)]
    for producer, sent in sends.items():
        own = producers == producer
        place = np.searchsorted(sent[:, 0], counters[own], side="right") - 1
        if len(sent):
            found.append(np.maximum(came_ns[own] - sent[place, 1], 0))
    return np.concatenate(found)


def _histogram(latencies_ns: Pairs) -> dict[int, int]:
    """Bucket -> messages, by rising bucket. Equal latencies are many, so each is put into its bucket once."""
    histogram: dict[int, int] = {}
    for value, count in zip(*np.unique(latencies_ns, return_counts=True), strict=True):
        bucket = bucket_of(int(value))
        histogram[bucket] = histogram.get(bucket, 0) + int(count)
    return histogram
