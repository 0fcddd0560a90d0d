"""Whose messages are listened to. Pure.

This is the one place where peers will authenticate each other: every message passes `refusal` before anything of it is
used. Today it holds the cluster's name against mistakes; against malice it needs to hold the identity that the
transport has proven (mutual TLS, the broker's id in the certificate) against the id that the envelope claims. Until
then whoever reaches the port and knows the cluster's name can speak for any broker (docs/dsbs.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.dsbs.tables.rows import Status

if TYPE_CHECKING:
    from coordinators.dsbs.tables.messages import Envelope


def refusal(envelope: Envelope, cluster: str) -> str | None:
    """Why the message is not from a member of this cluster, as a word to count by; or None."""
    if envelope.cluster != cluster:
        return "foreign cluster"
    if envelope.sender.status not in {Status.ALIVE, Status.LEFT}:
        return "sender who thinks itself dead"
    return None
