"""A real Apache Kafka under the instrument, of each kind; skipped where `make kafka` has not brought it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.processes.running import processes_of
from tests.integration.runs.short_runs import rows, run_here
from tests.unit.workloads.run.plans import plan
from workloads.run.runner import Summary
from workloads.spec.settings import Architecture, ClusterSettings
from workloads.systems.api import SystemSetup
from workloads.systems.kafka import Kafka
from workloads.systems.kafka_jars import VERSIONS, folder_of

pytestmark = [pytest.mark.java, pytest.mark.machine, pytest.mark.timeout(300)]

MESSAGES = 200
BROKERS = {"broker-1", "broker-2", "broker-3"}
SERVICES = {"kafka-kraft": set[str](), "kafka-zookeeper": {"zookeeper"}}


@pytest.fixture(params=VERSIONS, scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    row = str(request.param)
    if not folder_of(VERSIONS[row]).exists():
        pytest.skip(f"Kafka {VERSIONS[row]} is not in the cache; `make kafka` fetches it")
    return row


@pytest.fixture(scope="module")
def finished(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two short trials."""
    folder = tmp_path_factory.mktemp(kind)
    found = plan(
        architectures=f"architectures: {{it: {{system: {kind}, heap_mb: 256}}}}",
        experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming], driver: kafka}}",
        profile=f"{{experiments: one, messages: {MESSAGES}, tries: 1}}",
    )
    assert run_here(folder, found) == Summary(valid=2, invalid=0, failed=0)
    return folder


def test_trials_balance_by_what_is_read_back(finished: Path) -> None:
    for row in rows(finished).values():
        assert (row["verdict"], row["reason"]) == ("valid", "")
        assert [row[name] for name in ("sent", "acknowledged", "stored", "consumed")] == [MESSAGES] * 4


def test_every_java_process_is_accounted_for_with_its_collector(kind: str, finished: Path) -> None:
    roles = dict.fromkeys(BROKERS, "broker") | dict.fromkeys(SERVICES[kind], "coordinator")
    for row in rows(finished).values():
        found = {each["node"]: each for each in row["resources"] if each["role"] in {"broker", "coordinator"}}
        assert {node: each["role"] for node, each in found.items()} == roles
        assert all(each["rss_max_bytes"] > 2**20 and each["gc_pause_s"] is not None for each in found.values())


def test_what_kafka_does_not_count_is_empty_and_no_zero(finished: Path) -> None:
    for row in rows(finished).values():
        assert row["coordination"] is row["broker_requests"] is None
        assert {each["coordination_cpu_s"] for each in row["resources"]} == {None}


def test_a_run_leaves_its_logs_and_what_its_nodes_were_told_and_nothing_else(finished: Path) -> None:
    assert not (finished / "work").exists()
    assert processes_of(finished) == {}
    assert {path.stem for path in finished.glob("logs/*/broker-*.properties")} == BROKERS


async def led(kafka: Kafka, topic: str, leaders: Mapping[int, int]) -> None:
    """Return when they lead it: a broker that is back is given its partitions a moment later."""
    async with asyncio.timeout(30):
        while await kafka.leaders(topic) != leaders:  # noqa: ASYNC110 - Kafka tells nobody of a change
            await asyncio.sleep(0.05)


def test_a_killed_broker_comes_back_with_what_it_had(kind: str, tmp_path: Path) -> None:
    settings = ClusterSettings(
        brokers=3, partitions=3, replication_factor=1, acks=1, fsync="never", fsync_interval_ms=None
    )
    setup = SystemSetup(Architecture("it", kind, (("heap_mb", 256),)), settings, tmp_path / "data", tmp_path / "logs")

    async def story() -> None:
        kafka = Kafka(setup)
        try:
            await kafka.start()
            assert set(kafka.nodes.names) == BROKERS | SERVICES[kind]
            await kafka.create_topic("before", 3, 1, 0)
            leaders = await kafka.leaders("before")
            await kafka.nodes.kill("broker-2")
            await kafka.start_again("broker-2")
            await kafka.create_topic("after", 3, 1, 0)
            assert set((await kafka.leaders("after")).values()) == {1, 2, 3}
            await led(kafka, "before", leaders)
            assert await kafka.end_offsets("before") == {0: 0, 1: 0, 2: 0}
        finally:
            await kafka.stop()

    asyncio.run(story())
    assert processes_of(tmp_path) == {}
    assert not (tmp_path / "data").exists()
