"""The figures of the made findings, drawn once, and drawing without files."""

from __future__ import annotations

import pytest

from analysis.charts.paper_figures import Drawn


@pytest.fixture(scope="session")
def named(drawn: list[Drawn]) -> dict[str, Drawn]:
    return {one.name: one for one in drawn}


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw, but make no files: a second for every few figures."""
    for module in ("paper_figures", "comparison", "request_time", "surfaces"):
        monkeypatch.setattr(f"analysis.charts.{module}.rendered", lambda figure: (b"", b""))
