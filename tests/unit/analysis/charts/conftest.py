"""The figures of the made findings, drawn once, and drawing without files."""

from __future__ import annotations

import pytest

from analysis.charts.style import Drawn
from analysis.findings import Findings
from tests import made_report


@pytest.fixture(scope="session")
def named(drawn: list[Drawn]) -> dict[str, Drawn]:
    return {one.name: one for one in drawn}


@pytest.fixture(scope="session")
def steady() -> Findings:
    return made_report.steady()


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw, but make no files: a second for every few figures."""
    monkeypatch.setattr("analysis.charts.style.rendered", lambda figure: (b"", b""))
