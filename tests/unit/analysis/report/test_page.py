from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analysis import publish
from analysis.charts.style import Drawn
from analysis.errors import InputError
from analysis.findings import Findings
from analysis.report import page, summary, tables
from tests import made_findings, made_records, made_report
from tests.made_report import MANIFEST

HOSTILE = "<script>alert('x')</script>&\"'"


class Page(HTMLParser):
    """What a browser would fetch, run and show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.tags: list[str] = []
        self.shown: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


SVG = b'<svg viewBox="0 0 1 1"></svg>'
FIGURES = (
    Drawn("ratio_dsbs_zookeeper", "The answer.", b"png", SVG, table="comparison", only=("mode=split",)),
    Drawn("figure_01", HOSTILE, b"png", SVG),
)


def html(found: Findings, manifest: dict[str, Any] | None = None) -> str:
    return page.page(found, summary.summarise(found, manifest), tables.every_table(found), FIGURES, manifest)


def test_report_is_one_file_that_asks_for_nothing(found: Findings) -> None:
    parsed = Page(html(found))
    elsewhere = {source for source in parsed.sources if not source.startswith(("data:", "#"))}
    assert elsewhere == {f"tables/{table.name}.csv" for table in tables.every_table(found)}
    assert 'content="default-src &#39;none&#39;' in html(found)


def test_every_figure_and_table_leads_to_its_numbers_and_to_the_command_that_measures_it_again(
    steady: Findings,
) -> None:
    text = html(steady, MANIFEST)
    for table in tables.every_table(steady):
        assert f'href="tables/{table.name}.csv"' in text
    assert "brokerlab run --profile steady --only message_size=32B batch_size=20 mode=split</code>" in text
    first = FIGURES[0]
    assert f'href="tables/{first.table}.csv"' in text
    assert "brokerlab run --profile steady --only mode=split</code>" in text


def test_report_opens_at_the_answer(found: Findings) -> None:
    shown = re.sub(r"\s+", " ", " ".join(Page(html(found)).shown))
    order = [
        "What does coordination cost a message broker",
        "Every architecture runs the same brokers",
        "Ratio of rates",
        "dsbs / zookeeper",
        "2.00",
        "This run has no A/A",
        "Published beside measured",
        "Why: the cost of coordination",
        "The answer.",
        "Architectures compared, cell by cell",
        "Block, round, window",
        "This folder has no manifest.json",
    ]
    places = [shown.index(words) for words in order]
    assert places == sorted(places)


def test_the_first_screen_has_the_zero_with_its_floor(steady: Findings) -> None:
    shown = re.sub(r"\s+", " ", " ".join(Page(html(steady, MANIFEST)).shown))
    before = shown[: shown.index("Published beside measured")]
    for words in (
        "False alarms 1 of 21",
        "3.0 % no claim below it",
        "equal within 5 %",
        "client-bound in 1 of 7 cells",
    ):
        assert words in before


def test_an_older_protocol_is_said_in_a_box_and_a_newer_one_is_not(steady: Findings) -> None:
    assert '<aside class="older">' in html(made_report.older(), {**MANIFEST, "schema_version": 2})
    assert '<aside class="older">' not in html(steady, MANIFEST)


def test_without_a_script_the_filters_are_hidden_and_all_rows_are_there(steady: Findings) -> None:
    text = html(steady, MANIFEST)
    assert re.search(r'<form id="filters" hidden>', text)
    assert text.count('data-batch="50"') > 50


def test_the_longest_tables_are_in_their_files_alone(steady: Findings) -> None:
    text = html(steady, MANIFEST)
    assert '840 rows: <a href="tables/windows.csv">' in text


def test_a_figure_in_the_page_has_ids_of_its_own_and_no_size() -> None:
    svg = b"""<?xml version="1.0"?><svg width="9pt" height="9pt" viewBox="0 0 9 9" version="1.1"><metadata>x</metadata>
    <g id="a" style="clip-path: url(#b)"><use xlink:href="#c"/></g></svg>"""
    text = page.inlined(Drawn("one", "", b"", svg))
    assert text.startswith('<svg viewBox="0 0 9 9"')
    for part in ('id="one-a"', "url(#one-b)", 'xlink:href="#one-c"'):
        assert part in text
    assert "metadata" not in text
    assert "9pt" not in text


def test_texts_from_data_are_escaped(found: Findings) -> None:
    bad = dataclasses.replace(
        found, trials=tuple({**row, "verdict": "failed", "reason": HOSTILE} for row in found.trials)
    )
    plain = Page(html(found))
    parsed = Page(html(bad, {HOSTILE: {"deep": [HOSTILE, {"x": HOSTILE}]}, "profile": HOSTILE, "started": HOSTILE}))
    assert parsed.tags.count("script") == plain.tags.count("script") == 1
    assert HOSTILE in parsed.shown


def test_links_lead_to_sections_that_exist(found: Findings) -> None:
    text = html(found)
    for source in Page(text).sources:
        if source.startswith("#"):
            assert f'id="{source[1:]}"' in text


def test_the_run_is_called_as_its_manifest_says(found: Findings) -> None:
    text = html(found, made_records.manifest(profile="steady", started="2026-11-19T12:00:00+00:00"))
    assert "<title>brokerlab: steady, started 2026-11-19T12:00:00+00:00</title>" in text
    assert "steady, started 2026-11-19T12:00:00+00:00: 54 trials" in text
    assert "<title>brokerlab: a run</title>" in html(found)


def test_manifest_is_told_fact_by_fact(found: Findings) -> None:
    shown = Page(html(found, {"versions": {"python": "3.11.7"}, "seed": 2017, "cells": [1, 2]})).shown
    for fact in ("versions.python", "3.11.7", "seed", "2017", "cells", "1, 2"):
        assert fact in shown


def test_missing_manifest_is_said_and_a_broken_one_refused(found: Findings, tmp_path: Path) -> None:
    assert "no manifest.json" in html(found, None)
    assert publish.manifest(tmp_path) is None
    other = json.dumps(made_records.manifest(schema_version=99))
    for content, fault in (("{", "is not JSON"), ("{}", "another version"), ("[]", "another"), (other, "another")):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(InputError, match=f"manifest.json .*{fault}"):
            publish.manifest(tmp_path)


def test_one_architecture_alone_has_a_page_too(found: Findings) -> None:
    assert "One architecture measured: static" in html(made_findings.alone(found, "static"))


def test_a_reason_stands_on_the_page_of_a_run_without_a_valid_trial(found: Findings) -> None:
    trials = tuple({**row, "verdict": "failed", "reason": "port in use", "rps": None} for row in found.trials)
    assert "port in use" in html(dataclasses.replace(found, trials=trials))


def test_the_page_is_the_same_bytes_each_time(found: Findings) -> None:
    manifest = made_records.manifest(profile="steady")
    assert html(found, manifest) == html(made_findings.small(), dict(reversed(manifest.items())))
