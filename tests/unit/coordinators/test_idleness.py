from __future__ import annotations

from collections.abc import Collection

from coordinators.idleness import WATCHED_MS_MAX, Idleness, Stamps, Verdict

DAY = 24 * 3_600_000
WEEK = 7 * DAY
BIRTH = 1_700_000_000_000  # the time of day at which the broker starts; its monotonic clock begins at 0


def look(
    idleness: Idleness, now_ms: int, stamp_ms: int, members: Collection[str] = (), wall_ms: int = BIRTH
) -> Verdict:
    """At a group `g`; `wall_ms` is what the clock on the wall said at the broker's start."""
    return idleness.judge(Stamps(wall_ms + now_ms, {"g": stamp_ms}), members, WEEK, now_ms)


def test_a_group_goes_when_it_has_been_idle_for_all_of_the_retention() -> None:
    idleness = Idleness()
    assert not look(idleness, 0, BIRTH).over
    assert not look(idleness, WEEK - 1, BIRTH).over
    assert look(idleness, WEEK, BIRTH).over == {"g"}


def test_a_groups_age_is_known_after_a_restart() -> None:
    idleness = Idleness()
    assert not look(idleness, 0, BIRTH - 6 * DAY).over
    assert not look(idleness, DAY - 1, BIRTH - 6 * DAY).over
    assert look(idleness, DAY, BIRTH - 6 * DAY).over == {"g"}


def test_however_old_a_group_seems_it_is_watched_first() -> None:
    """Its members come back after a restart of their broker before it judges."""
    idleness = Idleness()
    assert not look(idleness, 0, 0).over
    assert not look(idleness, WATCHED_MS_MAX - 1, 0).over
    assert look(idleness, WATCHED_MS_MAX, 0).over == {"g"}


def test_a_clock_that_somebody_sets_while_the_broker_runs_changes_nothing() -> None:
    idleness = Idleness()
    look(idleness, 0, BIRTH)
    assert not look(idleness, DAY, BIRTH, wall_ms=BIRTH + 10 * WEEK).over
    assert not look(idleness, WEEK - 1, BIRTH, wall_ms=BIRTH + 10 * WEEK).over
    assert look(idleness, WEEK, BIRTH, wall_ms=BIRTH - 10 * WEEK).over == {"g"}


def test_a_stamp_of_the_future_is_as_one_of_now() -> None:
    idleness = Idleness()
    look(idleness, 0, BIRTH + 10 * WEEK)
    assert look(idleness, WEEK, BIRTH + 10 * WEEK).over == {"g"}


def test_a_commit_counts_from_when_it_is_seen_whatever_its_stamp_says() -> None:
    idleness = Idleness()
    look(idleness, 0, BIRTH)
    assert not look(idleness, 6 * DAY, BIRTH - 10 * WEEK).over
    assert not look(idleness, WEEK, BIRTH - 10 * WEEK).over
    assert look(idleness, 6 * DAY + WEEK, BIRTH - 10 * WEEK).over == {"g"}


def test_a_group_with_members_is_stamped_anew_before_its_stamp_is_old() -> None:
    idleness = Idleness()
    assert not look(idleness, 0, BIRTH, ["g"]).in_use
    assert not look(idleness, WEEK // 4 - 1, BIRTH, ["g"]).in_use
    assert look(idleness, WEEK // 4, BIRTH, ["g"]).in_use == ("g",)
    stamped = BIRTH + WEEK // 4
    assert not look(idleness, WEEK // 4 + 1, stamped, ["g"]).in_use


def test_a_group_counts_from_when_its_last_member_left() -> None:
    idleness = Idleness()
    look(idleness, 0, BIRTH)
    look(idleness, 10 * DAY, BIRTH, ["g"])
    assert not look(idleness, 10 * DAY + WEEK - 1, BIRTH).over
    assert look(idleness, 10 * DAY + WEEK, BIRTH).over == {"g"}


def test_a_group_that_went_is_remembered_no_longer() -> None:
    idleness = Idleness()
    look(idleness, 0, BIRTH)
    idleness.judge(Stamps(BIRTH, {}), (), WEEK, DAY)
    assert not look(idleness, WEEK, BIRTH + WEEK).over
