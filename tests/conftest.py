"""For all tests: examples take the time that a busy machine needs, and no process is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.integration.processes.running import alive, descendants

settings.register_profile("here", deadline=None, print_blob=True)
settings.load_profile("here")

# A shell starts what runs in the background with Ctrl-C ignored, and so would be all that the tests start from there;
# a handler of Python's own is not passed on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
