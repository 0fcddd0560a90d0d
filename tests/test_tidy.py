"""The house rules that no other tool checks: sizes, names, what is caught, and that the front door says what it has."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("analysis", "brokers", "coordinators", "workloads")
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# Folders that belong to somebody's machine, and words for where this was made.
MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(?:work|root|home|Users)/\w")


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that is or would be under version control."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


@cache
def python_files() -> tuple[Path, ...]:
    return tuple(path for path in tracked() if path.suffix == ".py" and not GENERATED.search(path.name))


def product_files() -> list[Path]:
    return [path for path in python_files() if path.relative_to(ROOT).parts[0] in PACKAGES]


def named(path: Path, node: ast.AST | None = None) -> str:
    place = str(path.relative_to(ROOT))
    return place if node is None else f"{place}:{getattr(node, 'lineno', 1)}"


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_there_is_something_to_look_at() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in product_files()} == set(PACKAGES)


def test_functions_are_short() -> None:
    long = [
        f"{named(path, node)} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in python_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert not long


def test_files_are_short() -> None:
    lengths = {named(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert {name: length for name, length in lengths.items() if length > FILE_LINES_MAX} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [named(path) for path in python_files() if VAGUE_NAMES & {path.stem, *path.relative_to(ROOT).parts}] == []


def test_every_module_that_is_started_as_a_process_is_there() -> None:
    """A rename finds imports; these are words."""
    pairs = [
        (path, first, second)
        for path in python_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.List | ast.Tuple | ast.Call)
        for first, second in pairwise(node.args if isinstance(node, ast.Call) else node.elts)
    ]
    started = [
        (path, second.value)
        for path, first, second in pairs
        if isinstance(first, ast.Constant) and first.value == "-m"
        and isinstance(second, ast.Constant) and isinstance(second.value, str)
    ]  # fmt: skip
    assert {"workloads.topology.entrance", "brokers"} <= {name for _, name in started}
    assert [f"{named(path)}: {name}" for path, name in started if find_spec(name) is None] == []


def test_every_module_says_what_it_is_for() -> None:
    written = [path for path in product_files() if path.stat().st_size]
    assert [named(path) for path in written if not ast.get_docstring(tree_of(path))] == []


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes any error; one of `BaseException` that always raises it again only tidies up."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {kind.id for kind in kinds if isinstance(kind, ast.Name)}
    if handler.type is None or "Exception" in names:
        return True
    return "BaseException" in names and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def test_no_error_is_caught_without_being_named() -> None:
    blanket = [
        named(path, node)
        for path in product_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node)
    ]
    assert not blanket


@pytest.mark.parametrize(
    ("source", "blanket"),
    [
        ("except:\n  pass", True),
        ("except Exception:\n  raise", True),
        ("except (OSError, Exception):\n  pass", True),
        ("except BaseException:\n  pass", True),
        ("except BaseException:\n  tidy()\n  raise", False),
        ("except OSError:\n  pass", False),
    ],
)
def test_the_rule_on_errors_tells_them_apart(source: str, blanket: bool) -> None:
    (statement,) = ast.parse(f"try:\n  pass\n{source}").body
    assert isinstance(statement, ast.Try)
    assert _catches_everything(statement.handlers[0]) == blanket


def test_nothing_is_left_to_be_done_in_the_product() -> None:
    folders = {*PACKAGES, "Makefile", ".ci", "pyproject.toml", "experiments.yaml"}
    found = [
        f"{named(path)}:{number}"
        for path, number, line in _lines()
        if path.relative_to(ROOT).parts[0] in folders and UNFINISHED.search(line)
    ]
    assert not found


def _lines() -> Iterator[tuple[Path, int, str]]:
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a picture
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            yield path, number, line


def test_no_file_names_a_place_of_somebodys_machine() -> None:
    place = re.compile(f"{MACHINE_PATHS.pattern}|{re.escape(str(ROOT))}/")
    assert [f"{named(path)}:{number}" for path, number, line in _lines() if place.search(line)] == []


# --- what is installed ----------------------------------------------------------------------------------------


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    text = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", text, re.MULTILINE)
    return {normalized(name): version for name, version in pins}


def required() -> dict[str, str]:
    """Distribution -> what pyproject.toml asks of its version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["dev"]]
    wanted += project["build-system"]["requires"]
    matches = [re.fullmatch(r"([A-Za-z0-9_.-]+)(.*)", text) for text in wanted]
    return {normalized(match[1]): match[2] for match in matches if match is not None}


def test_the_lock_pins_everything_that_is_required() -> None:
    lock = locked()
    assert required().keys() <= lock.keys()
    exact = {name: version.removeprefix("==") for name, version in required().items() if version.startswith("==")}
    assert {name: lock[name] for name in exact} == exact


def test_every_line_of_the_lock_is_a_pin_or_a_hash() -> None:
    text = (ROOT / "requirements.lock").read_text()
    lines = [line.removesuffix("\\").strip() for line in text.splitlines() if line.strip()]
    pin = re.compile(r"[A-Za-z0-9_.-]+==[^\s;]+( ; [^@]+)?|--hash=sha256:[0-9a-f]{64}")
    assert [line for line in lines if not pin.fullmatch(line)] == []
    assert sum(line.startswith("--hash") for line in lines) >= len(locked())


def test_the_lock_names_no_index_and_no_host() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert re.search(r"https?:|index-url|find-links|trusted-host|@ ", text) is None


# --- the front door -------------------------------------------------------------------------------------------


def targets() -> dict[str, bool]:
    """Targets that are no files -> whether `make help` has a line for them."""
    text = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    return {name: bool(re.search(rf"^{name}:.*## \S", text, re.MULTILINE)) for name in phony.split()}


def test_help_has_a_line_for_every_target() -> None:
    assert all(targets().values()), targets()
    said = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[1] for line in said.splitlines()) == sorted(targets())
    assert said == subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_front_door_has_what_a_user_is_promised() -> None:
    assert {"help", "setup", "run", "quick", "paper", "full", "test", "check", "bench", "clean"} <= targets().keys()


def test_the_commands_of_the_readme_are_there() -> None:
    readme = (ROOT / "README.md").read_text()
    asked = set(re.findall(r"^make ([a-z-]+)", readme, re.MULTILINE))
    assert {"run", "test"} <= asked <= targets().keys()
    profiles = set(re.findall(r"brokerlab run --profile ([a-z-]+)", (ROOT / "Makefile").read_text()))
    assert all(re.search(rf"^  {name}: ", (ROOT / "experiments.yaml").read_text(), re.MULTILINE) for name in profiles)


def test_the_console_command_is_the_one_that_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"brokerlab": "workloads.__main__:main"}
    assert Path(sys.executable).with_name("brokerlab").is_file()
