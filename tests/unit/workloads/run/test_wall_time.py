"""What a run's time went into."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic

from workloads.run.wall_time import PARTS, Spent, described


def test_parts_add_up_to_the_whole_and_go_on_from_an_earlier_run() -> None:
    total = {"windows": 10.0}
    spent = Spent(total)
    spent.add("warm-ups", 5)
    spent.add_visit(4, windows_s=2, audit_s=0.5)
    assert total == {"windows": 12, "warm-ups": 5, "audits": 0.5, "clusters": 0, "between": 1.5}
    assert described(total) == "19 s, windows 63%, warm-ups 26%, audits 3%, clusters 0%, between 8%"


def test_what_is_counted_otherwise_meanwhile_is_not_counted_twice() -> None:
    total: dict[str, float] = {}
    spent = Spent(total)
    with spent.beside_trials("clusters"):
        spent.add("windows", 1_000.0)
    assert total["windows"] == 1_000
    assert -1_000 <= total["clusters"] < -900  # the thousand seconds did not pass here


def test_audits_that_run_side_by_side_may_take_longer_than_their_visit_and_leave_nothing_between() -> None:
    total: dict[str, float] = {}
    Spent(total).add_visit(3, windows_s=2, audit_s=1.5)
    assert (total["windows"], total["audits"], total["between"]) == (2, 1.5, 0)


def test_time_that_passes_is_counted_where_something_fails_too() -> None:
    total: dict[str, float] = {}
    spent = Spent(total)
    with suppress(ValueError), spent.timed("warm-ups"):
        end = monotonic() + 0.002  # times are kept to the millisecond
        while monotonic() < end:
            pass
        raise ValueError
    assert total["warm-ups"] > 0


def test_nothing_is_said_of_a_run_without_trials() -> None:
    assert described(dict.fromkeys(PARTS, 0.0)) == ""
