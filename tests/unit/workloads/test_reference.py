"""What a file names by `MODULE:NAME` is there, or is refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.reference import load


def test_a_module_that_is_no_python_is_refused_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torn.py").write_text("ROW = (\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"torn:ROW cannot be loaded: .* \(torn\.py, line 1\)"):
        load("torn:ROW")
