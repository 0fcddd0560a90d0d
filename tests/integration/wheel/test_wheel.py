"""The wheel, installed where neither the checkout nor its environment's own `brokerlab` is.

Its dependencies are those of the environment that runs the tests, by a `.pth` line. `tests/test_public.py` holds that
they are declared, and `.github/workflows/ci.yml` installs them into an empty environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OFFLINE = ("--disable-pip-version-check", "--quiet", "--no-deps", "--no-index")

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


def outside_of_the_checkout(command: list[str], cwd: Path) -> str:
    hidden = {"PYTHONPATH", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    ended = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that has the wheel."""
    work = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip"]
    outside_of_the_checkout(
        [*pip, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", str(work), str(ROOT)], work
    )
    (wheel,) = work.glob("brokerlab-*.whl")
    environment = work / "environment"
    outside_of_the_checkout([sys.executable, "-m", "venv", "--without-pip", str(environment)], work)
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = environment / "bin" / "python"
    outside_of_the_checkout([*pip, "--python", str(python), "install", *OFFLINE, str(wheel)], work)
    return python.parent


def test_the_installed_command_runs_quick_from_an_empty_folder_to_the_report(installed: Path, tmp_path: Path) -> None:
    where = "import analysis, brokers, coordinators, workloads as w; print(analysis.__file__, w.__file__)"
    found = outside_of_the_checkout([str(installed / "python"), "-c", where], tmp_path)
    assert str(ROOT) not in found, "the checkout was imported"
    part = ["--only", "architecture=dsbs", "batch_size=20", "--messages", "400"]
    said = outside_of_the_checkout([str(installed / "brokerlab"), "run", "--profile", "quick", *part], tmp_path)
    assert " valid, 0 invalid, 0 failed trials" in said
    assert (tmp_path / "results" / "latest" / "report.html").stat().st_size > 0
    assert {path.name for path in tmp_path.iterdir()} == {"results"}
