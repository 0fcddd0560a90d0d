"""Why a replica does not serve, or does not acknowledge. `definite` says whether nothing certainly happened."""

from __future__ import annotations

from typing import ClassVar


class ReplicaError(Exception):
    """Root of all that a replica refuses with; the log's own errors and the coordination layer's pass through it."""

    definite: ClassVar[bool] = True


class NotLeader(ReplicaError):
    """Another broker leads the partition, or nobody does. The client asks again who leads."""


class TooFewInSync(ReplicaError):
    """Fewer replicas are in sync than the topic asks for before `acks=all`. Clients try again."""


class LeadershipEnded(NotLeader):
    """The leadership ended while what was appended under it was not acknowledged yet: it may be kept, or may not."""

    definite = False


class AcknowledgementLate(ReplicaError):
    """The append is not safe yet, and the client waits no longer: it may still become so."""

    definite = False
