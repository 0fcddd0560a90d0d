"""Findings of a run that has everything the report can show."""

from __future__ import annotations

import pytest

from analysis.findings import Findings
from tests import made_report


@pytest.fixture(scope="session")
def steady() -> Findings:
    return made_report.steady()
