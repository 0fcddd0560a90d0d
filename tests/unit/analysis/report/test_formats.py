from __future__ import annotations

import pytest

from analysis.report.formats import Column, Table, significant, to_csv, to_latex, to_markdown, written

TABLE = Table(
    name="t",
    title="A title",
    note="A note.",
    columns=(
        Column("who", "Who"),
        Column("n", "N", "count"),
        Column("rate", "Rate", "number"),
        Column("cv", "CV", "share"),
    ),
    rows=(
        {"who": "a|b & <c>", "n": 1234567, "rate": 98_765.4321, "cv": 0.01234},
        {"who": "d_e%", "n": None, "rate": "invalid", "cv": None},
    ),
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567.8, "1,234,568"),
        (123.456, "123"),
        (12.345, "12.3"),
        (1.2345, "1.23"),
        (0.012345, "0.0123"),
        (-12.345, "-12.3"),
        (float("inf"), "inf"),
    ],
)
def test_readers_see_three_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_values_are_written_by_kind() -> None:
    texts = [written(0.5, "share"), written(None, "number"), written(2.0, "count"), written(True, "text")]
    assert texts == ["50.0 %", "\u2013", "2", "yes"]


def test_csv_keeps_every_digit_and_leaves_words_out_of_number_columns() -> None:
    assert to_csv(TABLE) == "who,n,rate,cv\na|b & <c>,1234567,98765.4321,0.01234\nd_e%,,,\n"


def test_markdown_aligns_and_escapes() -> None:
    lines = to_markdown(TABLE).splitlines()
    assert lines[0] == "# A title"
    assert lines[4:] == [
        "| Who           |         N |    Rate |     CV |",
        "| ------------- | --------: | ------: | -----: |",
        "| a\\|b & &lt;c> | 1,234,567 |  98,765 | 1.23 % |",
        "| d_e%          |         \u2013 | invalid |      \u2013 |",
    ]


def test_latex_escapes_what_it_takes_for_commands() -> None:
    text = to_latex(TABLE)
    assert r"a|b \& <c> & 1,234,567 & 98,765 & 1.23 \% \\" in text
    assert r"d\_e\% & -- & invalid & -- \\" in text
    assert text.count(r"\toprule") == 1


def test_sections_become_tables_of_their_own() -> None:
    rows = tuple({"who": who, "n": n, "rate": 1.0, "cv": 0.0} for who in ("x", "y") for n in (1, 2))
    text = to_markdown(Table("t", "T", "", TABLE.columns, rows, sections=("who",)))
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## x", "## y"]
    assert "| Who" not in text
