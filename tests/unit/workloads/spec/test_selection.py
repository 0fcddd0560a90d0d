from __future__ import annotations

import pytest

from tests.unit.workloads.spec.files import spec, text
from workloads.errors import PlanError
from workloads.spec.plan import Plan, Trial, resolve


def plan(*only: str, profile: str = "steady") -> Plan:
    return resolve(spec(text()), profile, only)


def measured(found: Plan) -> list[Trial]:
    return [trial for trial in found.trials if trial.kind == "measured"]


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
        (("architecture=dsbs", "message_size=32B", "batch_size=1", "mode=streaming", "try=2"), 1),
    ],
)
def test_values_of_one_key_are_alternatives_and_keys_narrow_each_other(only: tuple[str, ...], count: int) -> None:
    assert len(measured(plan(*only))) == count


@pytest.mark.parametrize(
    "only", ["architecture=dsbs", "mode=split", "try=2", "experiment=batch-size", "message_size=8B"]
)
def test_a_part_keeps_the_ids_the_order_and_the_hash_of_the_whole(only: str) -> None:
    whole, part = plan(), plan(only)
    kept = {trial.id for trial in measured(part)}
    assert [trial.id for trial in measured(whole) if trial.id in kept] == [trial.id for trial in measured(part)]
    assert part.spec_hash == whole.spec_hash
    assert part.name == whole.name


def test_the_first_block_of_a_part_sizes_its_cells() -> None:
    found = plan("try=2", "try=3", "mode=split", "architecture=dsbs")
    assert [block.number for block in found.blocks] == [2, 3]
    sizing = [trial for trial in found.trials if trial.sizes]
    assert {trial.block for trial in sizing} == {2}
    assert {trial.cell.id for trial in sizing} == {cell.id for cell in found.cells} | {"calibration"}


def test_every_block_of_a_part_is_calibrated() -> None:
    found = plan("architecture=dsbs", "try=3")
    assert [leg.trials[-1].kind for leg in found.blocks[0].legs] == ["calibration", "measured", "calibration"]


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
