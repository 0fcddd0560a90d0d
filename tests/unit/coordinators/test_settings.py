from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from coordinators.errors import InvalidRequest
from coordinators.settings import TRUTH, Allowed, did_you_mean, read, text, whole, word


@dataclass(frozen=True)
class Example:
    name: Annotated[str, text(5)]
    wait_ms: Annotated[int, whole(0, 10)] = 3
    mode: Annotated[str, word("fast", "slow")] = "fast"
    certain: Annotated[bool, TRUTH] = False
    password: Annotated[str | None, Allowed("long", lambda value: len(value) > 3, secret=True)] = None


def refusal(found: object) -> str:
    with pytest.raises(InvalidRequest) as refused:
        read(Example, found, "the example", required=("name",))
    return str(refused.value)


def test_what_is_not_given_has_its_default() -> None:
    assert read(Example, {"name": "a"}, "the example", required=("name",)) == Example("a")
    given = {"name": "b", "wait_ms": 0, "mode": "slow", "certain": True, "password": "word"}
    assert read(Example, given, "the example") == Example("b", 0, "slow", certain=True, password="word")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"wait_ms": -1}, "wait_ms in the example must be a whole number from 0 to 10, not -1"),
        ({"wait_ms": 11}, "wait_ms in the example must be a whole number from 0 to 10, not 11"),
        ({"wait_ms": True}, "wait_ms in the example must be a whole number from 0 to 10, not True"),
        ({"wait_ms": 1.0}, "wait_ms in the example must be a whole number from 0 to 10, not 1.0"),
        ({"wait_ms": None}, "wait_ms in the example must be a whole number from 0 to 10, not None"),
        ({"name": ""}, "name in the example must be text of 1 to 5 characters, none of them zero, not ''"),
        ({"name": "a\0"}, "name in the example must be text of 1 to 5 characters, none of them zero, not 'a\\x00'"),
        ({"name": "abcdef"}, "name in the example must be text of 1 to 5 characters, none of them zero, not 'abcdef'"),
        ({"mode": "fas"}, "mode in the example must be one of fast, slow, not 'fas'"),
        ({"mode": ["fast"]}, "mode in the example must be one of fast, slow, not ['fast']"),
        ({"certain": 1}, "certain in the example must be true or false, not 1"),
        ({"wait": 1}, "unknown key 'wait' in the example; did you mean 'wait_ms'?"),
    ],
)
def test_a_refusal_names_the_place_the_value_and_what_is_allowed(given: dict[str, object], said: str) -> None:
    assert refusal({"name": "a", **given}) == said


def test_what_is_required_and_missing_is_named() -> None:
    assert refusal({}) == "the example lacks name"
    assert refusal([]) == "the example must be a mapping, not []"


def test_a_secret_is_never_quoted() -> None:
    assert refusal({"name": "a", "password": "abc"}) == "password in the example must be long"


def test_a_key_that_is_near_none_is_answered_with_all() -> None:
    assert did_you_mean("zzz", ["one", "two"]) == "known are one, two"
