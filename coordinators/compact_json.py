"""JSON without spaces, by one encoder: `json.dumps` with separators makes a new one for each call."""

from __future__ import annotations

import json
from typing import Final

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


def encoded(value: object) -> bytes:
    return _ENCODER.encode(value).encode()
