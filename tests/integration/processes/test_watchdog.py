"""The watchdog of tests' brokers sees a loop that stands still, and nothing else."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.processes.running import PATIENCE_S, RunningBroker, eventually
from tests.integration.processes.watched_broker import MARK, TURN_S_MAX


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    made = RunningBroker(tmp_path_factory.mktemp("watched"))
    made.start()
    yield made
    made.stop()


def serves(broker: RunningBroker) -> bool:
    answer = broker.admin_stub().DescribeCluster(pb.DescribeClusterRequest(), timeout=PATIENCE_S)
    return answer.me == 1


@pytest.mark.parametrize(("number", "where"), [(signal.SIGUSR1, "_sleep"), (signal.SIGUSR2, "_compute")])
def test_a_loop_that_stands_still_fails_the_test_and_says_where(
    broker: RunningBroker, number: signal.Signals, where: str
) -> None:
    assert broker.process is not None
    broker.process.send_signal(number)
    eventually(lambda: MARK in broker.log, "the watchdog has seen it")
    assert serves(broker)
    with pytest.raises(AssertionError, match="a turn of the event loop took"):
        broker.stop()
    assert where in broker.log
    (broker.folder / "broker.log").write_text("")  # it was meant


def test_a_process_that_was_stopped_is_not_at_fault(broker: RunningBroker) -> None:
    assert broker.process is not None
    process = broker.process
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2 * TURN_S_MAX)
    process.send_signal(signal.SIGCONT)
    assert serves(broker)
    assert broker.end() == 0
    assert MARK not in broker.log
