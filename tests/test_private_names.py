"""No module of the product uses a name that a library marks as its own: a release of the library may change those."""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.test_tidy import PACKAGES, ROOT, named, product_files, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Python documents these: the underscore keeps them apart from the fields of a named tuple, or warns. The last is one of
# the Kafka client's errors, which has an underscore because no broker sends it.
DOCUMENTED = {"_make", "_replace", "_fields", "_asdict", "_field_defaults", "_exit", "_ALL_BROKERS_DOWN"}
ITSELF = {"self", "cls"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in DOCUMENTED


def own_names(tree: ast.Module) -> set[str]:
    """Private names that a module gives to what is its own: attributes of its objects, functions, classes, fields."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                found.add(name)
            case ast.Attribute(ast.Name(owner), name, ast.Store()) if owner in ITSELF:
                found.add(name)
            case ast.Name(name, ast.Store()):
                found.add(name)
    return {name for name in found if is_private(name)}


def of_libraries(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Where a module imports a private name, or from a private module; and where it takes a private attribute of an
    object other than `self` which no object of its own has."""
    own = own_names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(str(module), names, 0) if module.partition(".")[0] not in PACKAGES:
                imported = [*module.split("."), *(alias.name for alias in names)]
            case ast.Import(names):
                imported = [part for alias in names for part in alias.name.split(".")]
            case ast.Attribute(ast.Name(owner), name) if owner not in ITSELF and name not in own:
                imported = [name]
            case ast.Attribute(value, name) if not isinstance(value, ast.Name) and name not in own and not _up(value):
                imported = [name]
            case _:
                continue
        yield from ((node, name) for name in imported if is_private(name))


def _up(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"


# --- what a class inherits -----------------------------------------------------------------------------------------


@cache
def private_names_in(kind: type) -> set[str]:
    """Private names of a class that is a library's, as far as its source tells."""
    found = {name for name in vars(kind) if is_private(name)}
    try:
        source = ast.parse(dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # it is not written in Python
        return found
    return found | {
        node.attr
        for node in ast.walk(source)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ITSELF
        and is_private(node.attr)
    }


def inherited(kind: type) -> set[str]:
    """What the libraries' classes above one of the product call their own."""
    above = [base for base in kind.__mro__ if base.__module__.partition(".")[0] not in PACKAGES]
    return {name for base in above for name in private_names_in(base)}


def of_libraries_above(path: Path, tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Where a class uses or replaces a private name of a library's class that it is made of."""
    module = None
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or not node.bases:
            continue
        module = module or importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        theirs = inherited(getattr(module, node.name))
        for inner in ast.walk(node):
            match inner:
                case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if name in theirs:
                    yield inner, name
                case ast.Attribute(ast.Name(owner), name) if owner in ITSELF and name in theirs:
                    yield inner, name
                case ast.Attribute(value, name) if _up(value) and name in theirs:
                    yield inner, name


# --- the rules -----------------------------------------------------------------------------------------------------


@cache
def modules() -> tuple[Path, ...]:
    return tuple(path for path in product_files() if path.stat().st_size)


def test_no_module_uses_a_name_that_a_library_marks_private() -> None:
    found = [f"{named(path, node)} {name}" for path in modules() for node, name in of_libraries(tree_of(path))]
    assert found == []


def test_no_class_uses_what_is_private_to_a_librarys_class_above_it() -> None:
    found = [f"{named(path, at)} {name}" for path in modules() for at, name in of_libraries_above(path, tree_of(path))]
    assert found == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from kazoo.protocol.paths import _prefix_root", ["_prefix_root"]),
        ("from confluent_kafka.admin._metadata import TopicMetadata", ["_metadata"]),
        ("import concurrent.futures._base", ["_base"]),
        ("client._connection._xid = 7", ["_connection", "_xid"]),
        ("class A:\n  def f(self):\n    self._client._call(1)", ["_call"]),
        ("class A:\n  def f(self):\n    handler()._queue.clear()", ["_queue"]),
        ("class A:\n  def __init__(self):\n    self._x = 1\n  def f(self, other):\n    return other._x", []),
        ("class A:\n  def f(self):\n    self._g()\n    super()._h()\n    cls._i", []),
        ("from __future__ import annotations\nfrom brokers.log import _x", []),
        ("import os\nfrom typing import NamedTuple\nos._exit(point._replace(x=1)._fields)", []),
        ("type(x).__name__\nx.__class__", []),
    ],
)
def test_the_rule_tells_a_librarys_names_from_our_own(source: str, names: list[str]) -> None:
    assert sorted(name for _, name in of_libraries(ast.parse(source))) == sorted(names)


class Library:
    def __init__(self) -> None:
        self._state = 0

    def _step(self) -> None: ...


def test_what_a_class_inherits_from_a_library_is_known_by_its_source() -> None:
    assert inherited(type("Ours", (Library,), {})) >= {"_state", "_step"}
