"""For all tests: examples take the time that a busy machine needs, only tests that say so see the programs that a bare
machine lacks, what is shared is started once, and no process is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests.bare_path import Machine
from tests.integration.processes.running import alive, descendants
from workloads.processes.java import find_java

settings.register_profile("here", deadline=None, print_blob=True)
settings.load_profile("here")

# A shell starts what runs in the background with Ctrl-C ignored, and so would be all that the tests start from there;
# a handler of Python's own is not passed on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MACHINE = pytest.StashKey[Machine]()
HIDE = "--hide-programs"
TESTS = Path(__file__).parent
# Folders whose tests begin first, so that at the end no process works long while the other has nothing left to do.
LONG = {"analysis", "contract", "integration", "toys"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(HIDE, action="store_true", help="no test sees the programs that a bare machine lacks")


def pytest_configure(config: pytest.Config) -> None:
    machine = config.stash[MACHINE] = Machine()
    config.add_cleanup(machine.close)
    machine.show(os.environ, optional=not config.getoption(HIDE))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hide from a test what it is not marked for."""
    marked = any(item.get_closest_marker(name) for name in ("java", "machine"))
    if item.config.stash[MACHINE].show(os.environ, optional=marked and not item.config.getoption(HIDE)):
        find_java.cache_clear()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """After the order was shuffled, so that it stays so among those that take long, and among the others."""
    items.sort(key=lambda item: not LONG & set(item.path.relative_to(TESTS).parts))


class Together(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that share what is started once (Spark, ZooKeeper, a cluster) stay in one process.

    xdist's own groups cannot say so: it writes them into a name of an item that pytest 9.2 does not read any more, and
    each test would be a group of its own.
    """

    def _split_scope(self, nodeid: str) -> str:
        return shared_by(TESTS.parent / nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return Together(config, log)


def shared_by(path: Path) -> str:
    """The outermost folder of tests whose conftest.py this file is under, and the file itself where there is none."""
    folders = reversed(path.relative_to(TESTS).parents[:-1])
    return str(next((folder for folder in folders if (TESTS / folder / "conftest.py").exists()), path))


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    before = descendants(os.getpid())
    yield
    left = {pid for pid in descendants(os.getpid()) - before if alive(pid)}
    assert not left, f"tests left processes behind: {left}"
