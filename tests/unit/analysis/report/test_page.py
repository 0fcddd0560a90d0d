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
from tests import made_findings, made_records

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


FIGURES = (Drawn("ratio_by_cell", "The answer.", b"png", b"<svg/>"), Drawn("figure_01", HOSTILE, b"png", b"<svg/>"))


def html(found: Findings, manifest: dict[str, Any] | None = None) -> str:
    return page.page(found, summary.summarise(found), tables.every_table(found), FIGURES, manifest)


def test_report_is_one_file_that_asks_for_nothing(found: Findings) -> None:
    parsed = Page(html(found))
    assert {source.partition(":")[0] for source in parsed.sources if not source.startswith("#")} == {"data"}
    assert "link" not in parsed.tags or all(source.startswith(("data:", "#")) for source in parsed.sources)


def test_report_opens_at_the_answer(found: Findings) -> None:
    text = re.sub(r"\s+", " ", " ".join(Page(html(found)).shown[:40]))
    assert "dsbs is faster than zookeeper in 12 of 12 comparisons (2.00 times its rate), slower in none." in text


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
