from __future__ import annotations

from tests.benchmarks.coordination import CREATED, DIED, Record, as_csv, markdown

RECORDS = [
    *[Record("dsbs", CREATED, number, agreed_ms, 4, 446) for number, agreed_ms in enumerate((8.0, 12.0, 10.0))],
    Record("static", DIED, 0, None, 0, 0),
]


def test_a_row_says_how_the_times_are_spread_and_what_a_change_costs() -> None:
    lines = markdown(RECORDS).splitlines()
    assert lines[2] == "| dsbs | topic created | 3 | 10.0 ms | 8.2 ms | 11.8 ms | 12.0 ms | 4 | 446 |"


def test_what_is_never_agreed_on_says_so() -> None:
    assert markdown(RECORDS).splitlines()[3] == "| static | broker died |  | never |  |  |  | 0 | 0 |"


def test_every_change_is_a_line_of_its_own() -> None:
    assert as_csv(RECORDS).splitlines()[1] == "dsbs,topic created,0,8.0,4,446"
    assert len(as_csv(RECORDS).splitlines()) == 1 + len(RECORDS)
