from __future__ import annotations

import pytest

from tests.unit.workloads.spec.files import spec, text
from workloads.errors import PlanError
from workloads.spec.plan import Plan, resolve


def plan(*only: str, profile: str = "steady") -> Plan:
    return resolve(spec(text()), profile, only)


@pytest.mark.parametrize(
    ("only", "count"),
    [
        ((), 72),
        (("architecture=dsbs",), 18),
        (("architecture=dsbs", "architecture=static"), 36),
        (("message_size=8B",), 24),
        (("message_size=8 B",), 24),
        (("message_size=8",), 24),
        (("mode=split",), 36),
        (("experiment=batch-size",), 48),
        (("experiment=batch-size", "experiment=message-size"), 72),
        (("try=1",), 24),
        (("try=3", "try=1"), 48),
        (("brokers=3",), 72),
        (("acks=1",), 72),
        (("rate=max",), 72),
        (("in_flight=5", "fetch_ahead=20", "load=none"), 72),
        (("architecture=dsbs", "message_size=32B", "batch_size=1", "mode=streaming", "try=2"), 1),
    ],
)
def test_values_of_one_key_are_alternatives_and_keys_narrow_each_other(only: tuple[str, ...], count: int) -> None:
    assert len(plan(*only).trials) == count


@pytest.mark.parametrize(
    "only", ["architecture=dsbs", "mode=split", "try=2", "experiment=batch-size", "message_size=8B"]
)
def test_a_part_keeps_the_ids_the_order_and_the_hash_of_the_whole(only: str) -> None:
    whole, part = plan(), plan(only)
    assert part.trials == tuple(trial for trial in whole.trials if trial in part.trials)
    assert 0 < len(part.trials) < len(whole.trials)
    assert part.spec_hash == whole.spec_hash
    assert part.name == whole.name


def test_a_fleet_without_a_selected_cell_is_not_started() -> None:
    source = text().replace("batch_size: [1, 20]", "batch_size: [1, 20], brokers: [3, 4]")
    found = resolve(spec(source), "steady", ["brokers=4", "try=1"])
    assert [fleet.cluster.brokers for block in found.blocks for fleet in block.fleets] == [4]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("architecture=dbss", "--only architecture=dbss: no trial has that architecture; did you mean 'dsbs'?"),
        ("architecture=raft", "allowed: zookeeper, zookeeper-watch, dsbs, static"),
        ("architectur=dsbs", "unknown key 'architectur'; did you mean 'architecture'?"),
        ("colour=red", "unknown key 'colour'; allowed: architecture, try, experiment, message_size"),
        ("mode=splitt", "did you mean 'split'?"),
        ("message_size=7B", "no trial has that message_size; allowed: 8B, 32B"),
        ("message_size=32kb", "it has the unknown unit 'kb'"),
        ("message_size=", "must be key=value"),
        ("message_size=" + "9" * 5_000, "message_size"),
        ("batch_size=50", "allowed: 20, 1"),
        ("experiment=batchsize", "did you mean 'batch-size'?"),
        ("try=4", "no trial has that try; allowed: 1, 2, 3"),
        ("try=0", "allowed: 1, 2, 3"),
        ("brokers=5", "allowed: 3"),
        ("dsbs", "must be key=value, such as architecture=dsbs"),
        ("", "must be key=value"),
        ("=dsbs", "unknown key ''"),
    ],
)
def test_a_filter_that_fits_nothing_is_refused_with_the_nearest_known(only: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan(only)
    assert message in str(caught.value)


def test_filters_that_fit_nothing_together_are_refused() -> None:
    with pytest.raises(PlanError, match="no cell fits all of: message_size=8B, experiment=batch-size"):
        plan("message_size=8B", "experiment=batch-size")
