"""What the peer is told, without starting it."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode

import pytest

from tests.bench import peer_kafka


def test_a_cluster_id_never_begins_with_a_hyphen(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [uuid.UUID(bytes=bytes([first, *range(15)])) for first in (0xF8, 0xFB, 0x00)]
    assert urlsafe_b64decode("-A==")[0] == drawn[0].bytes[0]
    monkeypatch.setattr(uuid, "uuid4", lambda: drawn.pop(0))
    assert peer_kafka.cluster_id() == "AAABAgMEBQYHCAkKCwwNDg"
