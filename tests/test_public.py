"""What somebody meets who only knows the repository: its version, its citation, its hooks, its CI and its wheel."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("analysis", "brokers", "coordinators", "workloads")


def project() -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def recipe(target: str) -> list[str]:
    """The commands of a target, as a shell gets them."""
    (lines,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return [line.strip().removeprefix("@").replace("$(BIN)", ".venv/bin") for line in lines.splitlines()]


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    released = re.findall(r"^## (\d\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert (citation["version"], str(citation["date-released"])) == released[0]
    assert project()["version"] == citation["version"]
    assert project()["license"] == citation["license"]


def test_the_hooks_run_what_make_check_runs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == recipe("check")


def test_the_workflow_runs_what_is_there() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = {command.split()[1] for command in commands if command.startswith("make ")}
    assert targets == {"quick", "test"}
    assert all(recipe(target) for target in targets)
    assert ".ci/run" in commands
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_every_library_that_the_product_imports_is_declared() -> None:
    imported = set()
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    libraries = imported - sys.stdlib_module_names - set(PACKAGES)
    known = packages_distributions()
    wanted = {normalized(known[name][0]) for name in libraries if name != "grpc_tools"}  # `make proto`, a developer's
    dependencies = project()["dependencies"]
    assert isinstance(dependencies, list)
    declared = {normalized(re.split(r"[<>=!~ ;\[]", text)[0]) for text in dependencies}
    # Spark brings py4j, and its own copy of ZooKeeper; no line of its own could fit better than Spark's.
    assert wanted - {"py4j"} <= declared


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
