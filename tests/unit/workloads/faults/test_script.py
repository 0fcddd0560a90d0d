"""A script of faults is read strictly: what is not meant is refused, by the number of its step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.faults.script import ROUNDS, STAGES, STEPS_MAX, VERBS, Script, ScriptRefused, Step, parse

GOOD: dict[str, Any] = {"at": "production", "do": "kill", "node": "broker-2"}


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    step: dict[str, Any] = {"at": draw(st.sampled_from(STAGES)), "do": draw(st.sampled_from(VERBS)), "node": "broker-1"}
    moments = ["begin"]
    if step["at"] in ROUNDS:
        moments.append("after_s")
    if step["at"] in {"production", "both"}:
        moments.append("after_acknowledged")
    match draw(st.sampled_from(moments)):
        case "after_s":
            step["after_s"] = draw(st.floats(0, 86_400) | st.integers(0, 86_400))
        case "after_acknowledged":
            step["after_acknowledged"] = draw(st.integers(1, 2**48))
    return step


@given(st.lists(steps(), max_size=5))
def test_steps_are_kept_as_they_are_and_in_their_order(given_steps: list[dict[str, Any]]) -> None:
    assert parse(given_steps) == Script(tuple(Step(**each) for each in given_steps))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"nod": "broker-1"}, "step 2: key cannot be 'nod'; did you mean 'node'?"),
        ({"at": "produktion"}, "step 2: at cannot be 'produktion'; did you mean 'production'?"),
        ({"at": None}, "step 2 needs 'at', a word"),
        ({"do": "murder"}, "step 2: do cannot be 'murder'; allowed: kill, terminate, pause, resume, start"),
        ({"node": 2}, "step 2 needs 'node', a word"),
        ({"after_s": 1, "after_acknowledged": 5}, "step 2 has one moment: after_s or after_acknowledged"),
        ({"at": "join", "after_s": 1}, r"step 2: after_s is of a round \(production, consumption, both\)"),
        ({"after_s": -0.1}, "step 2: after_s is 0 to 86400 seconds"),
        ({"after_s": "1"}, "step 2: after_s is 0 to 86400 seconds"),
        ({"after_s": True}, "step 2: after_s is 0 to 86400 seconds"),
        ({"after_s": float("nan")}, "step 2: after_s is 0 to 86400 seconds"),
        ({"at": "consumption", "after_acknowledged": 5}, "step 2: after_acknowledged is of a round that produces"),
        ({"after_acknowledged": 0}, "step 2: after_acknowledged is a number of messages"),
        ({"after_acknowledged": 1.5}, "step 2: after_acknowledged is a number of messages"),
    ],
)
def test_what_is_not_meant_is_refused_by_the_number_of_its_step(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ScriptRefused, match=f"^{reason}"):
        parse([GOOD, {**GOOD, **change}])


@pytest.mark.parametrize("key", ["at", "do", "node"])
def test_a_step_without_its_stage_its_verb_or_its_node_is_refused(key: str) -> None:
    with pytest.raises(ScriptRefused, match=f"step 1 needs '{key}', a word"):
        parse([{name: value for name, value in GOOD.items() if name != key}])


def test_a_script_has_an_end() -> None:
    with pytest.raises(ScriptRefused, match="1000 steps at most, not 1001"):
        parse([GOOD] * (STEPS_MAX + 1))


def test_a_stage_or_a_node_that_is_not_there_is_refused_before_the_trial() -> None:
    script = parse([GOOD])
    script.refuse_unfit(["topic", "production"], ["broker-1", "broker-2"])
    with pytest.raises(ScriptRefused, match="step 1: at cannot be 'production'; allowed: topic, both"):
        script.refuse_unfit(["topic", "both"], ["broker-2"])
    with pytest.raises(ScriptRefused, match="step 1: node cannot be 'broker-2'; did you mean 'broker-1'"):
        script.refuse_unfit(["production"], ["broker-1"])


def test_a_step_says_what_it_does_where_and_when() -> None:
    said = [str(Step("join", "pause", "broker-1")), str(Step("both", "start", "zookeeper", after_s=0.5))]
    said.append(str(Step("production", "kill", "broker-2", after_acknowledged=300)))
    assert said == [
        "pause broker-1 (join)",
        "start zookeeper (0.5 s into both)",
        "kill broker-2 (production, 300 messages acknowledged)",
    ]


def test_producers_tell_their_acknowledgements_only_where_a_step_waits_for_them() -> None:
    assert parse([GOOD]).tell_every(2) == 0
    waits = [{**GOOD, "after_acknowledged": count} for count in (4000, 400)]
    assert parse(waits).tell_every(2) == 20
    assert parse([{**GOOD, "after_acknowledged": 3}]).tell_every(2) == 1
