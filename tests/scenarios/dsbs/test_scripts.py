"""The scripts of this folder say what they said when they were last reviewed (see `script`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.dsbs.script import FOLDER, outcome


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    assert outcome(path.read_text()) == path.read_text()
