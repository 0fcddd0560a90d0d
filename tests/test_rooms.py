"""Where things live: no room, file or class is over its bound, and ARCHITECTURE.md leads to each of them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.test_tidy import PACKAGES, ROOT, named, product_files, tree_of

ROOM_MODULES_MAX = 15
FILE_LINES_MAX = 400
FILE_LINES_MIN = 40
CLASS_METHODS_MAX = 20
# Modules that are short, and why each stands alone.
SMALL: dict[str, str] = {
    "analysis/measures/saturation.py": "a measure of its own, with a name that is searched for",
    "analysis/report/columns.py": "the vocabulary that three modules of tables share",
    "analysis/report/commands.py": "the command line of a cell, for the page and its figures",
    "analysis/statistics/multiple.py": "two corrections, each used by another module",
    "analysis/statistics/student_t.py": "the distribution that is searched for, used outside of its room too",
    "brokers/listeners/requests/table.py": "the table of handlers, which imports them all",
    "brokers/replication/errors.py": "what callers on both data paths catch",
    "workloads/commands/compare.py": "a command is a module",
    "workloads/processes/tether.py": "a program of its own, started before anything is imported",
    "workloads/reference.py": "below the systems and the table of architectures, which both use it",
    "workloads/run/rounds.py": "the design of the experiment, which a reader looks up by its name",
    "workloads/systems/registry.py": "the one place for a new system's line",
}
# Classes with many methods, and why they are not cut.
MANY_METHODS: dict[str, str] = {
    "coordinators/api.py Coordinator": "the contract: 23 verbs that a broker calls, grouped by guarantee",
}
# What a newcomer searches for. ARCHITECTURE.md says where each is.
WORDS = (
    "acknowledgement", "audit", "authentication", "backpressure", "batch", "budget", "checkpoint", "commit",
    "compression", "controller", "CRC", "digest", "epoch", "fetch", "foreign load", "gossip", "heartbeat",
    "histogram", "idempotent", "in-sync", "incarnation", "index", "interval", "journal", "lease",
    "manifest", "metadata", "offset", "quorum", "rebalance", "recovery", "report", "retention",
    "round", "segment", "sendfile", "session", "snapshot", "Spark", "succession", "tether", "topology",
    "warm-up", "watch", "watermark", "window",
)  # fmt: skip
PATH = re.compile(rf"`((?:{'|'.join(PACKAGES)}|docs|tests)/[\w./-]*)`")
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def modules() -> list[Path]:
    """Modules of the product. `__init__.py` and `__main__.py` say what their package is, and are none of them."""
    return [path for path in product_files() if path.name not in {"__init__.py", "__main__.py"}]


def rows() -> list[tuple[str, str, str]]:
    """Room, what it is for, where to enter it: the lines of the table of rooms."""
    return re.findall(r"^\| `([a-z_/]+/)` \| ([^|]+) \| `(\w+\.py:\w+)` \|$", TEXT, re.MULTILINE)


def test_rooms_are_small() -> None:
    sizes = Counter(str(path.parent.relative_to(ROOT)) for path in modules())
    assert {room: size for room, size in sizes.items() if size > ROOM_MODULES_MAX} == {}


def test_files_are_neither_long_nor_without_a_reason_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in product_files()}
    assert {named(path): length for path, length in lengths.items() if length > FILE_LINES_MAX} == {}
    assert {named(path) for path in modules() if lengths[path] < FILE_LINES_MIN} == SMALL.keys()


def test_classes_have_few_methods() -> None:
    methods = {
        f"{named(path)} {node.name}": sum(
            isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body
        )
        for path in product_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }
    assert {
        re.sub(r":\d+ ", " ", name) for name, count in methods.items() if count > CLASS_METHODS_MAX
    } == MANY_METHODS.keys()


def test_every_module_stands_in_one_row_of_the_table_of_rooms() -> None:
    rooms = [room for room, _, _ in rows()]
    assert len(rooms) == len(set(rooms))
    assert set(rooms) == {f"{path.parent.relative_to(ROOT)}/" for path in modules()}


def test_every_entry_of_the_table_of_rooms_is_there() -> None:
    for room, _, entry in rows():
        module, _, name = entry.partition(":")
        tree = ast.parse((ROOT / room / module).read_text(encoding="utf-8"))
        kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        assert name in {node.name for node in tree.body if isinstance(node, kinds)}, entry


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_trade_leads_to_a_module(word: str) -> None:
    lines = [line for line in TEXT.splitlines() if re.search(rf"\b{re.escape(word)}", line, re.IGNORECASE)]
    paths = [path for line in lines for path in PATH.findall(line)]
    assert paths, f"no line with {word!r} names a place"


def test_every_path_in_the_document_is_there() -> None:
    assert [path for path in PATH.findall(TEXT) if not (ROOT / path).exists()] == []
