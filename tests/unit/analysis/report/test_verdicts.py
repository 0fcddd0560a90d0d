from __future__ import annotations

import pytest

from analysis.findings import Findings
from analysis.report import verdicts
from tests.made_report import verdict


@pytest.mark.parametrize(
    ("ratio", "half", "words", "tone"),
    [
        (2.0, 0.1, "faster", "faster"),
        (0.5, 0.1, "slower", "slower"),
        (1.035, 0.01, "faster, yet equal within 5 %", "faster"),
        (1.0, 0.02, "equal within 5 %", "equal"),
        (1.1, 0.3, "undecided: about 40 more rounds", "open"),
        (1.02, 0.01, "below the floor of 3.0 %", "open"),
        (0.98, 0.01, "below the floor of 3.0 %", "open"),
    ],
)
def test_a_verdict_of_rates_is_words_and_a_tone(ratio: float, half: float, words: str, tone: str) -> None:
    said = verdicts.of_rate(verdict(ratio, half), 1.03)
    assert (said.words, said.tone) == (words, tone)


def test_without_an_aa_there_is_no_floor_to_fall_below() -> None:
    assert verdicts.of_rate(verdict(1.02, 0.01), None).words == "faster, yet equal within 5 %"


def test_of_costs_the_lower_one_is_the_better() -> None:
    row = verdict(0.7, 0.05)
    assert verdicts.of_cost({**row, "verdict": "cheaper"}).tone == "faster"
    assert verdicts.of_cost({**row, "verdict": "dearer"}).tone == "slower"
    assert verdicts.of_cost({**row, "verdict": "undecided"}).words.startswith("undecided")


def test_what_cannot_be_decided_says_why() -> None:
    alone = {**verdict(2.0, 0.1), "verdict": "one try", "low": None, "high": None, "sd": None, "equal": False}
    assert verdicts.of_rate(alone, None).words == "undecided: one block has no interval"
    assert verdicts.of_rate({**alone, "verdict": "too few"}, None).words == "too few messages for a ratio"


def test_a_pooled_ratio_that_is_undecided_says_how_many_blocks_are_missing() -> None:
    row = {**verdict(1.02, 0.4), "sd": 0.2, "degrees": 2, "n": 3, "rounds_more": None}
    assert row["verdict"] == "undecided"
    assert verdicts.of_rate(row, None).words == f"undecided: about {verdicts.blocks_more(row)} more blocks"
    assert verdicts.of_rate({**row, "sd": 0.0, "rounds_more": 1}, None).words == "undecided: about 1 more round"
    wider = {**row, "sd": 0.4}
    assert (verdicts.blocks_more(wider) or 0) > (verdicts.blocks_more(row) or 0) >= 1
    assert verdicts.of_rate({**row, "sd": None}, None).words == "undecided"
    assert verdicts.of_rate({**row, "sd": 0.01}, None).words == "undecided"


def test_a_family_has_its_own_floor_or_that_of_all(steady: Findings) -> None:
    floors = verdicts.floors(steady)
    assert floors == dict.fromkeys(("production", "consumption", "streaming", "all"), 1.03)
    assert verdicts.floor_of({"all": 1.1, "streaming": 1.2}, "streaming") == 1.2
    assert verdicts.floor_of({"all": 1.1}, "production") == 1.1
    assert verdicts.floor_of({}, "production") is None
