"""What becomes of a window and of a trial, from sums that are written down here."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.measures import rates
from analysis.measures.rates import AFTER, BEFORE, Key, Sums
from analysis.measures.windows import SLICE_NS
from tests.made_records import MadeTrial, trial_row

SECOND = 1_000_000_000
START = 5 * SECOND


def trial(made: MadeTrial | None = None, **columns: Any) -> dict[str, Any]:
    return trial_row(made or MadeTrial("dsbs")) | columns


def window(number: int, name: str = "production", **more: Any) -> dict[str, Any]:
    """A window of 0.2 s."""
    return {
        "number": number, "window": name, "round": number, "attempt": 1, "place": 2, "wall_s": 1.0, "cores": 4,
        "busy_cores": 2.0, "stolen_cores": 0.0, "foreign_cores": 0.1, "opened_ns": START,
        "closed_ns": START + 10 * SLICE_NS, **more,
    }  # fmt: skip


def row(place: int, messages: int, last_ns: int | None, role: str = "production", **more: Any) -> dict[str, Any]:
    return {
        "trial_id": trial()["trial_id"], "role": role, "number": 1, "slice": place, "messages": messages,
        "requests": messages // 20, "failed": 0, "backwards": 0, "first_ns": START - SECOND, "last_ns": last_ns, **more,
    }  # fmt: skip


def even(messages: int = 200, number: int = 1) -> list[dict[str, Any]]:
    """Ten slices, each done 5 ms before its end, with work before and after."""
    inside = [row(k, messages, START + (k + 1) * SLICE_NS - 5_000_000, number=number) for k in range(10)]
    before = row(BEFORE, 999, START - 5_000_000, number=number)
    return [before, *inside, row(AFTER, 777, START + SECOND, number=number)]


def whole(length_s: float, messages: int = 30_000, role: str = "production", **more: Any) -> dict[str, Any]:
    return row(0, messages, START + round(length_s * SECOND), role, **{"first_ns": START, **more})


def of(rows: list[dict[str, Any]], windows: list[dict[str, Any]], **columns: Any) -> list[dict[str, Any]]:
    own = trial(windows=windows, **{"consumers": 0, "acknowledged": sum(one["messages"] for one in rows), **columns})
    return rates.windows([own], rates.gathered(rows))


WHOLE: dict[str, Any] = {"opened_ns": None, "closed_ns": None}


def test_whole_window_goes_from_the_first_send_to_the_last_end() -> None:
    (found,) = of([whole(0.75)], [window(1, **WHOLE)], message_size=64)
    assert (found["rps"], found["kbps"], found["window_s"]) == (40_000, 2_560, 0.75)


def test_timed_window_goes_from_the_last_end_before_it_opened_to_the_last_before_it_closed() -> None:
    (found,) = of(even(), [window(1)])
    assert (found["messages"], found["window_s"]) == (2_000, pytest.approx(0.2))
    assert found["rps"] == pytest.approx(10_000)


def test_window_with_no_end_before_it_opened_begins_where_it_opened() -> None:
    (found,) = of(even()[1:], [window(1)])
    assert found["window_s"] == pytest.approx(0.195)


def test_slow_start_is_dropped_and_one_of_a_third_is_marked() -> None:
    rows = even(400)
    for slow in rows[1:3]:
        slow["messages"] = 60
    (found,) = of(rows, [window(1)])
    assert (found["messages"], found["window_s"], found["unsettled"]) == (3_200, pytest.approx(0.16), False)
    for slow in rows[1:5]:
        slow["messages"] = 60
    (found,) = of(rows, [window(1)])
    assert (found["rps"], found["unsettled"]) == (pytest.approx(20_000), True)


@pytest.mark.parametrize(("each", "batch", "few"), [(100, 20, False), (99, 20, True), (100, 21, True), (249, 50, True)])
def test_timed_window_of_fewer_than_1000_messages_or_50_batches_has_no_rate(each: int, batch: int, few: bool) -> None:
    (found,) = of(even(each), [window(1)], batch_size=batch)
    assert (found["few"], found["rps"] is None) == (few, few)


def test_whole_window_is_never_too_short_of_messages_and_one_without_any_is() -> None:
    (found,) = of([whole(0.1, 20)], [window(1, **WHOLE)])
    assert (found["few"], found["rps"]) == (False, 200)
    (found,) = of([row(BEFORE, 500, START - 1)], [window(1)])
    assert (found["few"], found["rps"], found["messages"], found["window_s"]) == (True, None, 0, 0.2)


def test_least_disturbed_attempt_of_a_round_is_used_and_marked_where_it_is_disturbed() -> None:
    attempts = [(1, 0.5), (2, 0.3), (3, 0.3), (4, None)]
    windows = [window(n, round=1, attempt=n, foreign_cores=foreign) for n, foreign in attempts]
    found = of([one for n, _ in attempts for one in even(number=n)], windows)
    assert [(one["used"], one["rps"] is None, one["attempts"]) for one in found] == [
        (n == 2, n != 2, 4) for n in (1, 2, 3, 4)
    ]
    assert [one["disturbed"] for one in found] == [True, True, True, False]
    assert [one["foreign"] for one in found] == [0.125, pytest.approx(0.075), pytest.approx(0.075), None]


def test_window_of_both_ends_has_a_row_for_each() -> None:
    made = trial(MadeTrial("dsbs", mode="streaming"), windows=[window(1, "both", **WHOLE)])
    name = made["trial_id"]
    rows = [whole(1.0, trial_id=name), whole(2.0, role="consumption", trial_id=name)]
    found = rates.windows([made], rates.gathered(rows))
    assert [(one["role"], one["rps"]) for one in found] == [("production", 30_000), ("consumption", 15_000)]


def judged(rows: list[dict[str, Any]], **columns: Any) -> tuple[str, str]:
    windows = [window(1, **WHOLE), window(1, "consumption", **WHOLE)]
    return rates.judged(trial(windows=windows, **columns), rates.gathered(rows))


GOOD = [whole(1.0), whole(1.0, role="consumption")]


@pytest.mark.parametrize(
    ("rows", "columns", "verdict", "reason"),
    [
        (GOOD, {}, "valid", ""),
        (GOOD, {"verdict": "failed", "reason": "broker-2 died"}, "failed", "broker-2 died"),
        (GOOD, {"verdict": "invalid", "reason": ""}, "invalid", "invalid"),
        (GOOD, {"acknowledged": 29_999}, "invalid", "the request rows hold 30000 messages, the trial says 29999"),
        (GOOD, {"consumed": 1}, "invalid", "the request rows hold 30000 messages, the trial says 1"),
        ([whole(1.0, 0), GOOD[1]], {}, "invalid", "no message in production"),
        ([whole(0.0), GOOD[1]], {}, "invalid", "the window of production has no length"),
        ([whole(1.0, backwards=1), GOOD[1]], {}, "invalid", "1 request rows end before they begin"),
        (GOOD[1:], {}, "invalid", "no request rows of production"),
        (GOOD[:1], {"consumers": 0, "consumed": 0}, "valid", ""),
    ],
)
def test_trial_that_cannot_be_believed_has_a_reason(
    rows: list[dict[str, Any]], columns: dict[str, Any], verdict: str, reason: str
) -> None:
    assert judged(rows, **columns) == (verdict, reason)


def test_windows_of_a_trial_that_cannot_be_believed_have_no_rate_and_keep_its_reason() -> None:
    (found,) = of([whole(0.75)], [window(1, **WHOLE)], acknowledged=1)
    assert (found["verdict"], found["rps"], found["kbps"], found["messages"]) == ("invalid", None, None, 30_000)
    assert found["reason"] == "the request rows hold 30000 messages, the trial says 1"


def test_work_outside_of_windows_counts_for_the_balance_and_for_no_rate() -> None:
    filled = whole(9.0, 5_000, number=0)
    own = trial(windows=[window(1, **WHOLE)], acknowledged=35_000, consumers=0)
    sums = rates.gathered([filled, whole(1.0)])
    assert rates.judged(own, sums) == ("valid", "")
    (found,) = rates.windows([own], sums)
    assert found["rps"] == 30_000


def by_trial(trials: list[dict[str, Any]], sums: dict[Key, Sums]) -> list[dict[str, Any]]:
    return rates.by_trial(trials, sums, rates.windows(trials, sums))


def test_rate_of_a_trial_is_the_mean_of_its_used_windows() -> None:
    windows = [window(1, **WHOLE), window(2, **WHOLE), window(3, round=2, foreign_cores=2.0, **WHOLE)]
    rows = [whole(1.0), whole(2.0, number=2), whole(0.5, number=3)]
    own = trial(windows=windows, acknowledged=90_000, consumers=0)
    (found,) = by_trial([own], rates.gathered(rows))
    assert (found["rps"], found["windows"], found["window_s"]) == (22_500, 2, 3.0)
    assert (found["messages_done"], found["first_ns"], found["last_ns"]) == (90_000, START, START + 2 * SECOND)


@pytest.mark.parametrize(("length_s", "short"), [(0.249, True), (0.25, False)])
def test_whole_windows_under_a_quarter_second_are_marked_short(length_s: float, short: bool) -> None:
    own = trial(windows=[window(1, **WHOLE)], consumers=0)
    (found,) = by_trial([own], rates.gathered([whole(length_s)]))
    assert found["short_window"] is short


@pytest.mark.parametrize(("lengths", "noisy"), [((1.0, 1.14), False), ((1.16, 1.0), True), ((1.0,), None)])
def test_block_is_noisy_when_its_two_calibration_trials_differ_by_more_than_15_percent(
    lengths: tuple[float, ...], noisy: bool | None
) -> None:
    trials = [
        trial(
            MadeTrial("static", kind="calibration", name=f"calibration/{n}"), windows=[window(1, **WHOLE)], consumers=0
        )
        for n, _ in enumerate(lengths)
    ]
    rows = [whole(length_s, trial_id=own["trial_id"]) for own, length_s in zip(trials, lengths, strict=True)]
    assert {one["noisy"] for one in by_trial(trials, rates.gathered(rows))} == {noisy}


def test_only_used_windows_of_valid_measured_trials_count() -> None:
    one = {"kind": "measured", "verdict": "valid", "used": True}
    rows = [one, {**one, "kind": "calibration"}, {**one, "verdict": "invalid"}, {**one, "used": False}]
    assert rates.of_valid(rows) == [one]


def test_other_axes_of_a_cell_are_told_apart_from_the_three_of_every_cell() -> None:
    assert rates.others("message_size=8,batch_size=20,mode=split,brokers=5,acks=-1") == "brokers=5,acks=-1"
    assert rates.others("calibration") == ""
