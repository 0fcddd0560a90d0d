"""Nodes to values, each helper of the reader by itself: what it takes, and where and how it refuses the rest."""

from __future__ import annotations

import pytest

from tests.unit.workloads.spec.files import FILE
from workloads.errors import SpecError
from workloads.spec import fields, keys
from workloads.spec.fields import Given
from workloads.spec.settings import Rtt
from workloads.spec.yaml_source import Entry, Mapping, Node, read_text

NUMBER = keys.whole(1, 9)


def node(text: str) -> Node:
    """What stands behind `it: ` in a file of one line; so the value begins in column 5."""
    found = read_text(f"it: {text}", FILE)
    assert isinstance(found, Mapping)
    return found.entries["it"].value


def entries(text: str) -> dict[str, Entry]:
    found = node(text)
    assert isinstance(found, Mapping)
    return dict(found.entries)


def column_of(text: str, piece: str) -> int:
    assert text.count(piece) == 1
    return len("it: ") + text.index(piece) + 1


def refused(caught: pytest.ExceptionInfo[SpecError]) -> tuple[int | None, str]:
    assert caught.value.line == 1
    return caught.value.column, caught.value.message


# --- mappings --------------------------------------------------------------------------------------------------------


def test_a_section_hands_out_what_it_has_of_what_is_known() -> None:
    found = fields.section(node("{b: 2}"), "it", ("a", "b"), required=("b",))
    assert list(found) == ["b"]
    assert fields.value(NUMBER, "b", found["b"].value) == 2


def test_an_unknown_key_is_refused_where_it_stands_before_one_that_is_missing() -> None:
    text = "{bb: 2}"
    with pytest.raises(SpecError) as caught:
        fields.section(node(text), "the section", ("a", "b"), required=("a",))
    assert refused(caught) == (column_of(text, "bb"), "unknown key 'bb' in the section; did you mean 'b'?")


def test_a_required_key_that_is_missing_is_told_at_the_section() -> None:
    with pytest.raises(SpecError) as caught:
        fields.section(node("{b: 2}"), "the section", ("a", "b"), required=("b", "a"))
    assert refused(caught) == (5, "the section lacks the key 'a'")


@pytest.mark.parametrize(("text", "what"), [("3", "'3'"), ("[3]", "a list"), ("", "nothing")])
def test_what_is_no_mapping_is_refused_by_what_it_is(text: str, what: str) -> None:
    with pytest.raises(SpecError, match=f"the section must be a mapping of keys to values, not {what}"):
        fields.mapping(node(text), "the section")


@pytest.mark.parametrize(("count", "taken"), [(0, False), (1, True), (200, True), (201, False)])
def test_names_are_from_one_to_two_hundred(count: int, taken: bool) -> None:
    text = node(f"{{{', '.join(f'n{number}: 1' for number in range(count))}}}")
    if taken:
        assert len(fields.named(text, "profiles")) == count
    else:
        with pytest.raises(SpecError, match=f"profiles must have from 1 to 200 entries; it has {count}"):
            fields.named(text, "profiles")


# --- values ----------------------------------------------------------------------------------------------------------


def test_a_value_is_what_its_kind_makes_of_the_text() -> None:
    assert fields.value(NUMBER, "it", node("9")) == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10", "it cannot be '10': it must be a whole number from 1 to 9, in plain digits"),
        ("''", "it has no value; allowed: a whole number from 1 to 9"),
        ("[1]", "it must be one value, not a list; allowed: a whole number from 1 to 9"),
        ("{a: 1}", "it must be one value, not a mapping; allowed: a whole number from 1 to 9"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        fields.value(NUMBER, "it", node(text))
    assert refused(caught) == (5, message)


def test_an_absent_key_has_its_default_as_if_it_stood_there_and_none_where_it_has_none() -> None:
    table = {"a": keys.Key(NUMBER, "3"), "b": keys.Key(NUMBER)}
    assert [fields.optional(table, key, {}) for key in table] == [3, None]
    assert [fields.optional(table, key, entries("{a: 4, b: 5}")) for key in table] == [4, 5]


# --- lists -----------------------------------------------------------------------------------------------------------


def test_one_value_stands_for_a_list_of_one_and_an_empty_list_for_nothing() -> None:
    alone, listed = node("3"), node("[3, 4]")
    assert fields.items("it", alone) == (alone,)
    assert [fields.value(NUMBER, "it", item) for item in fields.items("it", listed)] == [3, 4]
    with pytest.raises(SpecError, match="it is an empty list; name at least one value, or leave the key out"):
        fields.items("it", node("[]"))


def test_the_values_of_an_axis_keep_their_order_and_their_places() -> None:
    text = "[5, 3, 4]"
    assert fields.axis("brokers", node(text)) == tuple(
        Given(number, item.place) for number, item in zip((5, 3, 4), fields.items("brokers", node(text)), strict=True)
    )


def test_a_range_of_sizes_is_several_values_at_one_place() -> None:
    found = fields.axis("message_size", node("[8B..32B, 100B]"))
    assert [given.value for given in found] == [8, 16, 32, 100]
    assert [given.place and given.place.column for given in found] == [6, 6, 6, 15]


@pytest.mark.parametrize(("key", "text", "again"), [("rate", "[5, 7, 5.0]", "5.0"), ("brokers", "[3, 4, 3 ]", "3 ")])
def test_a_value_that_an_axis_has_already_is_refused_where_it_stands_again(key: str, text: str, again: str) -> None:
    with pytest.raises(SpecError) as caught:
        fields.axis(key, node(text))
    assert refused(caught) == (column_of(text, again), f"{key} has the same value twice; each would be the same cell")


def test_what_happens_at_an_interval_is_a_policy_and_no_other_key_takes_one() -> None:
    (found,) = fields.axis("fsync", node("{interval_ms: 50}"))
    assert found.value == keys.Policy("interval", 50)
    with pytest.raises(SpecError, match="brokers must be one value, not a mapping"):
        fields.axis("brokers", node("{interval_ms: 50}"))


def test_round_trips_that_are_not_said_are_none() -> None:
    (found,) = fields.axis("rtt_ms", node("{client_broker: 1.5}"))
    assert found.value == Rtt(client_broker=1.5)
    assert not any(Rtt())


def test_a_default_stands_nowhere_in_the_file() -> None:
    assert fields.default_axis("brokers") == (Given(3, None),)
    assert fields.default_axis("message_size") == (), "it must be given"


def test_distinct_values_keep_their_order_and_one_that_comes_again_is_refused() -> None:
    assert fields.distinct(NUMBER, "it", node("[4, 2]")) == (4, 2)
    text = "[4, 2, 4 ]"
    with pytest.raises(SpecError) as caught:
        fields.distinct(NUMBER, "it", node(text))
    assert refused(caught) == (column_of(text, "4 "), "it has 4 twice")


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("[b, aa]", "aa", "it has the unknown name 'aa'; did you mean 'a'?"),
        ("[b, b ]", "b ", "it has 'b' twice"),
        ("[b, [a]]", "[a]", "it must be a list of names, not a list"),
    ],
)
def test_choices_are_known_names_none_of_them_twice(text: str, at: str, message: str) -> None:
    assert fields.choices("it", node("[b, a]"), ("a", "b")) == ("b", "a")
    with pytest.raises(SpecError) as caught:
        fields.choices("it", node(text), ("a", "b"))
    column, said = refused(caught)
    assert column == column_of(text, at)
    assert said.startswith(message)
