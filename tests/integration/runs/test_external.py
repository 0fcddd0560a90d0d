"""A cluster that somebody else runs, driven through its addresses alone: audited by a fetch, and refused where it is
not what the file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.integration.runs.short_runs import rows, run_here
from tests.integration.runs.theirs import BROKERS, cluster
from tests.unit.workloads.run.plans import plan
from workloads.clients.client_files import Ids
from workloads.clients.drivers.api import DriverError
from workloads.console import topics
from workloads.console.connection import Cluster
from workloads.errors import UserError
from workloads.processes.ports import free_ports
from workloads.run.runner import Summary
from workloads.spec.plan import Plan
from workloads.systems.external import External
from workloads.systems.read_back import read_back
from workloads.trial import evidence


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("theirs")) as addresses:
        yield addresses


def of_external(bootstrap: str, brokers: int = BROKERS) -> Plan:
    return plan(
        architectures=f"architectures: {{theirs: {{system: external, bootstrap: '{bootstrap}'}}}}",
        experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming], driver: kafka, "
        f"brokers: {brokers}}}}}",
        profile="{experiments: one, messages: 300, tries: 1}",
    )


def test_a_cluster_of_others_is_measured_and_what_is_not_known_of_it_is_left_out(
    bootstrap: str, tmp_path: Path
) -> None:
    assert run_here(tmp_path, of_external(bootstrap)) == Summary(valid=2, invalid=0, failed=0)
    for row in rows(tmp_path).values():
        assert {row[count] for count in ("sent", "acknowledged", "stored", "consumed")} == {300}
        assert {each["role"] for each in row["resources"]} == {"producer", "consumer"}
        assert (row["coordination"], row["broker_requests"]) == (None, None)


def test_a_trial_that_comes_to_no_end_leaves_no_topic_behind_and_is_run_again(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(system: External, topic: str, into: Path) -> None:
        raise DriverError("the audit breaks off")

    with monkeypatch.context() as broken:
        broken.setattr(External, "stored", breaks)
        assert run_here(tmp_path, of_external(bootstrap)) == Summary(valid=0, invalid=0, failed=2)
    assert topics_at(bootstrap) == []
    assert run_here(tmp_path, of_external(bootstrap)) == Summary(valid=2, invalid=0, failed=0)


def test_topics_of_others_are_nobodys_trial(bootstrap: str, tmp_path: Path) -> None:
    """What a run leaves that was killed, or what another run makes in the same cluster at this moment."""
    theirs = Cluster(bootstrap.split(","))
    names = [f"trial-{position}" for position in range(1, 4)]
    for name in names:
        topics.create(theirs, name, 1, 1, {})
    try:
        assert run_here(tmp_path, of_external(bootstrap)) == Summary(valid=2, invalid=0, failed=0)
        assert topics_at(bootstrap) == names
    finally:
        for name in names:
            topics.delete(theirs, name)


def topics_at(bootstrap: str) -> list[str]:
    return [row.name for row in topics.list_all(Cluster(bootstrap.split(",")))]


def test_what_somebody_else_sends_is_found_by_the_fetch(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def with_a_stranger(system: External, topic: str, into: Path) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, b"\0\x09" + b"\0" * 5 + b"\x07" + b"not what is sent here...", partition=2)
        assert producer.flush(10) == 0

    monkeypatch.setattr(External, "stored", with_a_stranger)
    assert run_here(tmp_path, of_external(bootstrap)) == Summary(valid=0, invalid=2, failed=0)
    for row in rows(tmp_path).values():
        assert row["stored"] == 301
        assert "partition 2: 1 messages stored and not acknowledged (9.7)" in row["reason"]


def test_what_is_acknowledged_and_not_there_is_found_by_the_fetch(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_the_last(bootstrap: Sequence[str], topic: str, ends: Mapping[int, int]) -> dict[int, Ids]:
        return read_back(bootstrap, topic, {**ends, 0: ends[0] - 10})

    monkeypatch.setattr(evidence, "read_back", without_the_last)
    assert run_here(tmp_path, of_external(bootstrap)) == Summary(valid=0, invalid=2, failed=0)
    for row in rows(tmp_path).values():
        assert row["stored"] == 290
        assert "partition 0: 10 messages acknowledged and not stored (0." in row["reason"]


def test_another_number_of_brokers_than_the_file_says_is_refused(bootstrap: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'theirs' has 3 brokers at .*, not 4, as the file says"):
        run_here(tmp_path, of_external(bootstrap, brokers=4))


def test_addresses_at_which_nobody_answers_are_refused(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with pytest.raises(UserError, match=f"no broker answers at 127.0.0.1:{port}"):
        run_here(tmp_path, of_external(f"127.0.0.1:{port}"))
