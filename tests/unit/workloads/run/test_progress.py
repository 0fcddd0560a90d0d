"""What is shown of a run: where it is, at which pace, and what a trial came to."""

from __future__ import annotations

import pytest

from tests.unit.workloads.run.plans import plan
from workloads.run import progress
from workloads.run.progress import LiveProgress, Pace, PlainProgress, duration, progress_for
from workloads.spec.plan import Trial
from workloads.trial.record import FAILED, VALID, TrialRecord


def good(trial: Trial) -> TrialRecord:
    record = TrialRecord(trial, verdict=VALID)
    record.rates = {"producer": [1000.0, 1469.0], "consumer": [99.0]}
    return record


def bad(trial: Trial) -> TrialRecord:
    return TrialRecord(trial, verdict=FAILED, reason="broker-1 was ended by SIGKILL")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.6, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_read_as_a_person_says_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_plain_line_says_trial_place_and_rates(capsys: pytest.CaptureFixture[str]) -> None:
    small = plan()
    shown = PlainProgress()
    shown.begin(small, 1)
    shown.trial_ends(good(small.trials[1]))
    shown.trial_ends(bad(small.trials[2]))
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "going on: 1 of 4 trials are done"
    assert second.startswith("[2/4, ")
    assert second.endswith(f"{small.trials[1].id}: 1,234/s produced, 99/s consumed")
    assert third.endswith(f"{small.trials[2].id}: FAILED: broker-1 was ended by SIGKILL")


def test_blocks_that_are_added_are_counted_from_then_on(capsys: pytest.CaptureFixture[str]) -> None:
    small = plan()
    shown = PlainProgress()
    shown.begin(small, 0)
    shown.grows(2)
    shown.visit_begins(small.blocks[0].fleets[0].visits[0])
    shown.trial_ends(good(small.trials[0]))
    assert capsys.readouterr().out.startswith("[1/6, ")


def test_trials_that_were_done_before_do_not_speed_up_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    small = plan()
    pace = Pace(small, 2)
    assert pace.left_s() is None
    now = 110.0
    pace.count()
    assert pace.left_s() == 10.0


def test_a_live_line_may_end_before_it_began_and_prints_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    LiveProgress().end()
    small = plan()
    shown = LiveProgress()
    shown.begin(small, 0)
    try:
        shown.visit_begins(small.blocks[0].fleets[0].visits[0])
        shown.grows(4)
        shown.trial_ends(bad(small.trials[0]))
    finally:
        shown.end()
    assert "FAILED: broker-1 was ended by SIGKILL" in " ".join(capsys.readouterr().out.split())


def test_where_there_is_no_terminal_lines_are_plain() -> None:
    assert isinstance(progress_for(object()), PlainProgress)
