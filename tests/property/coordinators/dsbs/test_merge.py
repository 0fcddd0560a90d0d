"""The merge of tables is commutative, associative and idempotent; their digests say whether they are equal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinators.dsbs.tables.rows import TableRow
from coordinators.dsbs.tables.tables import Table
from tests.property.coordinators.dsbs.rows import table_rows

some_rows = st.lists(table_rows, max_size=12)


def held(table: Table) -> set[TableRow]:
    return set(table.rows())


def merged(one: Table, other: Table) -> Table:
    result = one.copy()
    result.merge(other.rows())
    return result


@given(some_rows, some_rows)
def test_merging_is_commutative(left: list[TableRow], right: list[TableRow]) -> None:
    one, other = Table(left), Table(right)
    assert held(merged(one, other)) == held(merged(other, one))


@given(some_rows, some_rows, some_rows)
def test_merging_is_associative(first: list[TableRow], second: list[TableRow], third: list[TableRow]) -> None:
    a, b, c = Table(first), Table(second), Table(third)
    assert held(merged(merged(a, b), c)) == held(merged(a, merged(b, c)))


@given(some_rows)
def test_merging_is_idempotent(rows: list[TableRow]) -> None:
    table = Table(rows)
    before = held(table)
    assert table.merge(list(before)) == []
    assert held(table) == before


@given(some_rows, st.randoms(use_true_random=False))
def test_the_order_in_which_rows_come_makes_no_difference(rows: list[TableRow], chance: object) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert held(Table(rows)) == held(Table(shuffled))
    assert Table(rows).hash == Table(shuffled).hash


@given(some_rows, some_rows)
def test_an_old_table_changes_nothing_newer(old: list[TableRow], new: list[TableRow]) -> None:
    table = Table([*old, *new])
    before = held(table)
    assert table.merge(Table(old).rows()) == []
    assert held(table) == before


@given(some_rows, some_rows)
def test_hashes_are_equal_if_and_only_if_tables_are(left: list[TableRow], right: list[TableRow]) -> None:
    one, other = Table(left), Table(right)
    assert (one.hash == other.hash) == (held(one) == held(other))
    assert (one.differing(other.digest) == []) == (held(one) == held(other))


@given(some_rows, some_rows)
def test_exchanging_the_differing_buckets_makes_tables_equal(left: list[TableRow], right: list[TableRow]) -> None:
    one, other = Table(left), Table(right)
    buckets = one.differing(other.digest)
    theirs = [row for rows in other.by_bucket(buckets).values() for row in rows]
    mine = [row for rows in one.by_bucket(buckets).values() for row in rows]
    one.merge(theirs)
    other.merge(mine)
    # A tombstone in one bucket may drop leaders in another; the next comparison finds those.
    again = one.differing(other.digest)
    other.merge([row for rows in one.by_bucket(again).values() for row in rows])
    one.merge([row for rows in other.by_bucket(again).values() for row in rows])
    assert held(one) == held(other)
