"""Flat settings: mappings of a config file, read once and refused whole where one key is wrong. Pure.

A dataclass says with `Annotated` what each of its settings may be. A refusal names the place, the value and what is
allowed; an unknown key is refused with the nearest known one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar, get_type_hints

from coordinators.errors import InvalidRequest
from coordinators.strict_json import is_whole

T = TypeVar("T")


class Allowed(NamedTuple):
    """What a setting may be, in words and as a test. A `secret` is never quoted: messages end up in logs."""

    said: str
    holds: Callable[[Any], bool]
    secret: bool = False


def whole(least: int, most: int) -> Allowed:
    return Allowed(f"a whole number from {least} to {most}", lambda value: is_whole(value, least, most))


def word(*words: str) -> Allowed:
    return Allowed(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def text(characters_max: int) -> Allowed:
    return Allowed(
        f"text of 1 to {characters_max} characters, none of them zero",
        lambda value: isinstance(value, str) and 1 <= len(value) <= characters_max and "\0" not in value,
    )


DELAY_US: Final = whole(0, 10_000_000)
TRUTH: Final = Allowed("true or false", lambda value: isinstance(value, bool))
LIST: Final = Allowed("a list", lambda value: isinstance(value, list))
MAPPING: Final = Allowed("a mapping", lambda value: isinstance(value, dict))


def read(kind: type[T], found: object, where: str, required: Iterable[str] = ()) -> T:
    """Settings of a kind from those that are given. Raises `InvalidRequest`."""
    hints = get_type_hints(kind, include_extras=True)
    return kind(**checked({key: hint.__metadata__[0] for key, hint in hints.items()}, found, where, required))


def checked(known: Mapping[str, Allowed], found: object, where: str, required: Iterable[str] = ()) -> Mapping[str, Any]:
    """`found` as a mapping of known keys to what they may be. Raises `InvalidRequest`."""
    if not isinstance(found, Mapping):
        raise InvalidRequest(f"{where} must be {MAPPING.said}, not {found!r}")
    for key, value in found.items():
        if key not in known:
            raise InvalidRequest(f"unknown key {key!r} in {where}; {did_you_mean(key, known)}")
        if not known[key].holds(value):
            said = "" if known[key].secret else f", not {value!r}"
            raise InvalidRequest(f"{key} in {where} must be {known[key].said}{said}")
    missing = [key for key in required if key not in found]
    if missing:
        raise InvalidRequest(f"{where} lacks {', '.join(missing)}")
    return found


def did_you_mean(key: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown key: the nearest known one, or the known ones where none is near."""
    names = list(known)
    near = get_close_matches(key, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
