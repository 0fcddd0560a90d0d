"""JSON as this program writes and reads it: without spaces, each key of an object once, numbers within bounds. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

SHOWN_CHARACTERS_MAX: Final = 100
# One encoder: `json.dumps` with separators makes a new one for each call.
to_text: Final = json.JSONEncoder(separators=(",", ":")).encode


def encoded(value: object) -> bytes:
    return to_text(value).encode()


def decoded(content: bytes | str) -> Any:
    """Raises ValueError, also for what nests too deep: it comes from others, and may be anything."""
    try:
        return json.loads(content, object_pairs_hook=_without_duplicates)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice")
    return found


def is_whole(found: object, least: int, most: int) -> bool:
    """Whether what was read is a whole number within these bounds; true and false are none."""
    return type(found) is int and least <= found <= most


def shown(found: object) -> str:
    """What was read, as a message quotes it."""
    return repr(found)[:SHOWN_CHARACTERS_MAX]
