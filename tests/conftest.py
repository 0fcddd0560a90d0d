"""For all tests: examples take the time that a busy machine needs, only tests that say so see the programs that a bare
machine lacks, and no process is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A folder's tests stay in one process, so that what they share (Spark, ZooKeeper, a cluster) is started once."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(str(item.path.parent)))


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    before = descendants(os.getpid())
    yield
    left = {pid for pid in descendants(os.getpid()) - before if alive(pid)}
    assert not left, f"tests left processes behind: {left}"
