"""A script of faults: what is done to which node of the system, and at which moment of a trial.

    {at: join, do: pause, node: broker-1}                               when the stage begins, before anything of it
    {at: production, after_s: 0.5, do: kill, node: broker-2}            so long into a round
    {at: both, after_acknowledged: 1000, do: start, node: broker-2}     when so many messages are acknowledged

Stages that are no rounds have their steps at their beginning alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from workloads.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

# The stages of a trial. A split trial has the first two rounds, a streaming one the third.
TOPIC, CONNECT, JOIN, AUDIT = "topic", "connect", "join", "audit"
PRODUCTION, CONSUMPTION, BOTH = "production", "consumption", "both"
ROUNDS: Final = (PRODUCTION, CONSUMPTION, BOTH)
STAGES: Final = (TOPIC, CONNECT, JOIN, *ROUNDS, AUDIT)
KILL, TERMINATE, PAUSE, RESUME, START = "kill", "terminate", "pause", "resume", "start"
VERBS: Final = (KILL, TERMINATE, PAUSE, RESUME, START)
STEPS_MAX: Final = 1000
TELLS: Final = 10  # of each producer, before the first step that waits for acknowledgements
AFTER_S_MAX: Final = 86_400.0


class ScriptRefused(UserError):
    """The script says what cannot be done; the message names the step."""


@dataclass(frozen=True, slots=True)
class Step:
    at: str
    do: str
    node: str
    after_s: float | None = None  # of the round
    after_acknowledged: int | None = None  # by all producers together

    def __str__(self) -> str:
        moment = self.at
        if self.after_s is not None:
            moment = f"{self.after_s:g} s into {self.at}"
        elif self.after_acknowledged is not None:
            moment = f"{self.at}, {self.after_acknowledged} messages acknowledged"
        return f"{self.do} {self.node} ({moment})"


_KEYS: Final = tuple(field.name for field in fields(Step))
_NEEDED: Final = ("at", "do", "node")


@dataclass(frozen=True, slots=True)
class Script:
    """Steps in their order; those of one moment are done one after the other."""

    steps: tuple[Step, ...] = ()

    def tell_every(self, producers: int) -> int:
        """After how many messages each producer tells how many are acknowledged; 0 where no step asks for it."""
        counts = [step.after_acknowledged for step in self.steps if step.after_acknowledged is not None]
        return max(1, min(counts) // (TELLS * producers)) if counts else 0

    def refuse_unfit(self, stages: Collection[str], nodes: Collection[str]) -> None:
        """Raise `ScriptRefused` where a trial has no such stage, or the system no such node."""
        for number, step in enumerate(self.steps, start=1):
            _refuse_other(number, "at", step.at, stages)
            _refuse_other(number, "node", step.node, nodes)


def parse(steps: Sequence[Mapping[str, Any]]) -> Script:
    """The script of steps as a file has them. Raises `ScriptRefused`."""
    if len(steps) > STEPS_MAX:
        raise ScriptRefused(f"a script has {STEPS_MAX} steps at most, not {len(steps)}")
    return Script(tuple(_step(number, given) for number, given in enumerate(steps, start=1)))


def _step(number: int, given: Mapping[str, Any]) -> Step:
    for name in given:
        _refuse_other(number, "key", name, _KEYS)
    for name in _NEEDED:
        if not isinstance(given.get(name), str):
            raise ScriptRefused(f"step {number} needs {name!r}, a word")
    _refuse_other(number, "at", given["at"], STAGES)
    _refuse_other(number, "do", given["do"], VERBS)
    step = Step(**given)
    if step.after_s is not None and step.after_acknowledged is not None:
        raise ScriptRefused(f"step {number} has one moment: after_s or after_acknowledged")
    if step.after_s is not None:
        _refuse_unless(number, "after_s", step.at in ROUNDS, f"is of a round ({', '.join(ROUNDS)})")
        _refuse_unless(number, "after_s", _is_number(step.after_s, AFTER_S_MAX), f"is 0 to {AFTER_S_MAX:g} seconds")
    if step.after_acknowledged is not None:
        produces = step.at in {PRODUCTION, BOTH}
        whole = isinstance(step.after_acknowledged, int) and _is_number(step.after_acknowledged, 2**48)
        _refuse_unless(number, "after_acknowledged", produces, f"is of a round that produces ({PRODUCTION}, {BOTH})")
        _refuse_unless(number, "after_acknowledged", whole and step.after_acknowledged > 0, "is a number of messages")
    return step


def _is_number(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def _refuse_unless(number: int, key: str, good: bool, rule: str) -> None:
    if not good:
        raise ScriptRefused(f"step {number}: {key} {rule}")


def _refuse_other(number: int, key: str, word: object, known: Collection[str]) -> None:
    if word not in known:
        raise ScriptRefused(f"step {number}: {key} cannot be {word!r}; {did_you_mean(str(word), known)}")
