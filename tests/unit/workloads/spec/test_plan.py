from __future__ import annotations

import itertools
import random

import pytest

from tests.unit.workloads.spec.files import EXPERIMENTS, FILE, experiment, refusal, spec, text
from workloads.errors import PlanError
from workloads.spec.plan import Leg, Plan, Trial, resolve
from workloads.spec.settings import Length, Pin, Until

ARCHITECTURE_NAMES = ["zookeeper", "zookeeper-watch", "dsbs", "static"]


def measured(trials: tuple[Trial, ...]) -> list[Trial]:
    return [trial for trial in trials if trial.kind == "measured"]


def main_legs(plan: Plan, block: int) -> tuple[Leg, ...]:
    """Of a block, by its index: what lies between its calibrations."""
    return plan.blocks[block].legs[1:-1]


def test_a_cell_that_two_experiments_share_is_one_cell() -> None:
    plan = resolve(spec(text()), "steady")
    assert {cell.id: cell.experiments for cell in plan.cells} == {
        "message_size=8,batch_size=20,mode=split": ("message-size",),
        "message_size=8,batch_size=20,mode=streaming": ("message-size",),
        "message_size=32,batch_size=20,mode=split": ("message-size", "batch-size"),
        "message_size=32,batch_size=20,mode=streaming": ("message-size", "batch-size"),
        "message_size=32,batch_size=1,mode=split": ("batch-size",),
        "message_size=32,batch_size=1,mode=streaming": ("batch-size",),
    }


def test_an_id_names_the_axes_that_are_swept_anywhere_in_the_profile() -> None:
    swept = text(
        experiments=f"{EXPERIMENTS}\n"
        "  more: {message_size: 32B, batch_size: 20, mode: split, brokers: 5, rate: [max, 2.5]}",
        profiles="profiles: {all: {experiments: [batch-size, more], messages: 100, tries: 1}}",
    )
    assert [cell.id for cell in resolve(spec(swept), "all").cells] == [
        "message_size=32,batch_size=1,mode=split,brokers=3,rate=max",
        "message_size=32,batch_size=1,mode=streaming,brokers=3,rate=max",
        "message_size=32,batch_size=20,mode=split,brokers=3,rate=max",
        "message_size=32,batch_size=20,mode=streaming,brokers=3,rate=max",
        "message_size=32,batch_size=20,mode=split,brokers=5,rate=max",
        "message_size=32,batch_size=20,mode=split,brokers=5,rate=2.5",
    ]


def test_in_each_try_every_architecture_runs_every_cell_once() -> None:
    plan = resolve(spec(text()), "steady")
    expected = sorted(itertools.product((cell.id for cell in plan.cells), ARCHITECTURE_NAMES, (1, 2, 3)))
    found = sorted((trial.cell.id, trial.architecture.name, trial.block) for trial in measured(plan.trials))
    assert found == expected


def test_every_trial_has_an_id_and_a_position_of_its_own() -> None:
    plan = resolve(spec(text()), "steady")
    assert len({trial.id for trial in plan.trials}) == len(plan.trials)
    assert [trial.position for trial in plan.trials] == list(range(1, len(plan.trials) + 1))
    assert measured(plan.trials)[0].id.count("/") == 2
    assert "message_size=8,batch_size=20,mode=split/dsbs/2" in {trial.id for trial in plan.trials}


def test_architectures_take_turns_at_being_first() -> None:
    plan = resolve(spec(text()), "paper")
    order = [[leg.architecture.name for leg in main_legs(plan, block)] for block in range(4)]
    assert order == [ARCHITECTURE_NAMES[turn:] + ARCHITECTURE_NAMES[:turn] for turn in range(4)]


def test_within_a_block_all_architectures_meet_the_cells_in_one_order_and_blocks_differ() -> None:
    plan = resolve(spec(text()), "paper")
    orders: list[tuple[str, ...]] = []
    for block in range(4):
        found = {tuple(trial.cell.id for trial in measured(leg.trials)) for leg in main_legs(plan, block)}
        assert len(found) == 1
        orders += found
    assert len(set(orders)) > 1


def test_the_same_seed_gives_the_same_order_on_every_python() -> None:
    """Written down, so that a Python that would draw otherwise is seen."""
    plan = resolve(spec(text()), "steady")
    orders = [
        " ".join(f"{t.cell.message_size}/{t.cell.batch_size}/{t.cell.mode}" for t in measured(leg.trials))
        for leg in (main_legs(plan, 0)[0], main_legs(plan, 1)[0])
    ]
    assert orders == [
        "32/20/streaming 8/20/streaming 8/20/split 32/20/split 32/1/streaming 32/1/split",
        "32/20/streaming 32/20/split 32/1/split 8/20/streaming 8/20/split 32/1/streaming",
    ]


def test_the_order_does_not_hang_on_the_state_of_the_random_module() -> None:
    random.seed(1)
    first = resolve(spec(text()), "steady")
    random.seed(2)
    assert resolve(spec(text()), "steady") == first


def test_another_seed_gives_another_order_of_the_same_trials() -> None:
    one = resolve(spec(text()), "paper")
    other = resolve(spec(text(trials="trials: {seed: 1}")), "paper")
    assert [trial.id for trial in one.trials] != [trial.id for trial in other.trials]
    assert {trial.id for trial in measured(one.trials)} == {trial.id for trial in measured(other.trials)}


def test_a_calibration_on_static_opens_and_closes_each_block() -> None:
    plan = resolve(spec(text(workload="workload: {driver: grpc, rate: [100, max]}")), "paper")
    for block in plan.blocks:
        for leg, end in ((block.legs[0], "open"), (block.legs[-1], "close")):
            last = leg.trials[-1]
            assert last.id == f"calibration/{block.number}/{end}"
            assert last.kind == "calibration"
            assert last.architecture.row == "static"
            assert last.length == Length(None, 1.0, 1000)
            assert (last.cell.message_size, last.cell.batch_size, last.cell.mode) == (32, 20, "split")
            assert last.cell.workload.rate is None
            assert last.cell.experiments == ()


def test_a_calibration_needs_no_static_architecture_in_the_file() -> None:
    plan = resolve(spec(text(architectures="architectures: {dsbs: {coordinator: dsbs}}")), "steady")
    assert plan.blocks[0].legs[0].architecture.row == "static"
    assert [each.name for each in plan.architectures] == ["dsbs"]


def test_a_cluster_is_warmed_before_its_first_measured_trial_in_every_leg() -> None:
    plan = resolve(spec(text(trials="trials: {warmup: 2}")), "paper")
    for leg in (leg for block in plan.blocks for leg in block.legs):
        warm = [trial for trial in leg.trials[:2] if trial.kind == "warmup" and trial.sizes is None]
        assert len(warm) == 2
        assert all(trial.length.duration_s == 0.5 for trial in warm)
    kinds = [trial.kind for trial in main_legs(plan, 0)[0].trials]
    assert kinds == ["warmup"] * 2 + ["measured"] * 6


def test_a_profile_may_say_itself_how_long_its_clusters_are_warmed() -> None:
    profiles = """profiles:
  long: {experiments: batch-size, messages: 30000, tries: 1, warmup: 3}
  other: {experiments: batch-size, messages: 30000, tries: 1}"""
    found = spec(text(profiles=profiles, trials="trials: {warmup: 1}"))
    plans = [resolve(found, name) for name in ("long", "other")]
    counts = [{sum(trial.kind == "warmup" for trial in leg.trials) for leg in main_legs(plan, 0)} for plan in plans]
    assert counts == [{3}, {1}]
    assert plans[0].spec_hash != plans[1].spec_hash
    assert (
        plans[1].spec_hash == resolve(spec(text(profiles=profiles.replace("warmup: 3", "warmup: 1"))), "long").spec_hash
    )


def test_under_a_duration_a_warm_up_of_each_cell_and_architecture_sizes_it_in_the_first_block_alone() -> None:
    plan = resolve(spec(text()), "steady")
    sizing = [trial for trial in plan.trials if trial.sizes]
    assert {trial.block for trial in sizing} == {1}
    cells = {(trial.cell.id, trial.architecture.name) for trial in sizing}
    assert cells == {(trial.cell.id, trial.architecture.name) for trial in plan.trials}
    assert len(sizing) == len(cells)
    assert {trial.sizes for trial in sizing} == {Length(None, 1.0, 1000)}
    for trial in sizing:
        later = [other for other in plan.trials if other.cell.id == trial.cell.id and other.kind != "warmup"]
        assert all(other.position > trial.position for other in later if other.architecture == trial.architecture)


def test_in_a_leg_all_warm_ups_come_before_all_measured_trials() -> None:
    plan = resolve(spec(text()), "steady")
    for leg in (leg for block in plan.blocks for leg in block.legs):
        kinds = [trial.kind == "warmup" for trial in leg.trials]
        assert kinds == sorted(kinds, reverse=True)


def test_where_messages_are_counted_only_the_calibration_is_sized() -> None:
    plan = resolve(spec(text()), "paper")
    assert [trial.id for trial in plan.trials if trial.sizes] == ["sizing/calibration/static"]
    assert {trial.length for trial in measured(plan.trials)} == {Length(30_000, None, 1000)}


def test_a_cluster_is_started_once_for_each_block_architecture_and_cluster_settings() -> None:
    swept = experiment("brokers: [3, 4, 5]", mode="[split, streaming]")
    plan = resolve(spec(swept), "steady")
    legs = main_legs(plan, 0)
    assert len(legs) == 12
    assert len({(leg.architecture.name, leg.cluster) for leg in legs}) == 12
    assert all({trial.cell.cluster for trial in leg.trials} == {leg.cluster} for leg in legs)
    assert [name for name, _ in itertools.groupby(leg.architecture.name for leg in legs)] == ARCHITECTURE_NAMES


def test_settings_of_the_workload_share_a_cluster() -> None:
    plan = resolve(spec(experiment("producers: [1, 2], commit: [end, every_batch]")), "steady")
    assert len(main_legs(plan, 0)) == len(ARCHITECTURE_NAMES)


def test_a_warm_up_of_a_cell_sends_one_full_request_of_each_producer_at_least() -> None:
    plan = resolve(spec(experiment("producers: 3", batch="50")), "steady")
    assert main_legs(plan, 0)[0].trials[0].length.messages_min == 150


def test_a_short_profile_has_short_warm_ups_and_calibrations() -> None:
    plan = resolve(spec(text().replace("duration_s: 1,", "duration_s: 0.2,")), "steady")
    lengths = {(trial.sizes is not None, trial.length.duration_s) for trial in plan.trials}
    assert lengths == {(False, 0.2), (True, 0.1)}


def test_only_the_architectures_of_the_profile_run_and_in_the_files_order() -> None:
    source = text().replace("duration_s: 1,", "duration_s: 1, architectures: [static, dsbs],")
    plan = resolve(spec(source), "steady")
    assert [each.name for each in plan.architectures] == ["dsbs", "static"]


def test_an_unknown_profile_is_refused_with_the_nearest() -> None:
    with pytest.raises(PlanError, match=f"{FILE} has no profile 'stedy'; did you mean 'steady'") as caught:
        resolve(spec(text()), "stedy")
    assert caught.value.exit_code == 2


def test_messages_of_the_command_line_replace_the_length_and_change_what_is_measured() -> None:
    plain = resolve(spec(text()), "paper")
    plan = resolve(spec(text()), "paper", messages=500)
    assert {trial.length.messages for trial in measured(plan.trials)} == {500}
    assert plan.spec_hash != plain.spec_hash
    assert resolve(spec(text()), "steady", messages=30_000).spec_hash == plain.spec_hash


def test_messages_of_the_command_line_must_be_a_request_at_least() -> None:
    with pytest.raises(PlanError, match="19 messages are less than one request of each producer in message_size=8"):
        resolve(spec(text()), "paper", messages=19)


def test_more_trials_than_can_be_run_are_refused() -> None:
    many = ", ".join(str(each) for each in range(1, 1_001))
    source = experiment(batch=f"[{many}]").replace("tries: 1}", "tries: 26}")
    with pytest.raises(PlanError, match="more than 100,000 trials"):
        resolve(spec(source), "steady")


def test_an_id_too_long_for_a_file_name_is_refused() -> None:
    every_axis = (
        "brokers: [9, 10], partitions: [1000, 1001], replication_factor: [1, 2], acks: [1, all], producers: [1, 64], "
        "fsync: [never, {interval_ms: 3600000}], consumers: [1, 64], commit: [end, {interval_ms: 3600000}], "
        "driver: [kafka, grpc], fetch: [batch, stream], rate: [max, 123456789.123456]"
    )
    with pytest.raises(PlanError, match="longer than 220 characters, too long for a file name"):
        resolve(spec(experiment(every_axis, batch="9999")), "steady")


SAME = {
    "comments": text() + "# a comment\n",
    "more tries": text().replace("tries: 4", "tries: 9"),
    "another timeout": text(trials="trials: {timeout_s: 60}"),
    "the order of keys": text(cluster="cluster: {partitions: 3, brokers: 3}"),
    "a default that is written out": text(cluster="cluster: {partitions: 3, brokers: 3, acks: 1, fsync: never}"),
    "the order of architectures": text(
        architectures="architectures:\n  static: {coordinator: static}\n  dsbs: {coordinator: dsbs}\n"
        "  zookeeper-watch: {coordinator: zookeeper, metadata: watch, offsets: zookeeper_interval, "
        "offsets_interval_ms: 1000}\n"
        "  zookeeper: {coordinator: zookeeper}"
    ),
    "the order of a list": text().replace("[8B, 32B]", "[32B, 8B]"),
    "how a size is written": text().replace("[8B, 32B]", "[8 B, 32B]"),
    "an experiment of another profile": text(
        experiments=f"{EXPERIMENTS}\n  other: {{message_size: 1KB, batch_size: 1, mode: split}}"
    ),
    "the name of the profile": text().replace("paper:", "other:").replace("steady:", "paper:").replace(
        "duration_s: 1", "messages: 30000"
    ),
}  # fmt: skip
DIFFERENT = {
    "a setting of the cluster": text(cluster="cluster: {acks: all}"),
    "a setting of the workload": text(workload="workload: {driver: kafka}"),
    "the seed": text(trials="trials: {seed: 2018}"),
    "warm-ups": text(trials="trials: {warmup: 2}"),
    "the length": text().replace("messages: 30000", "messages: 30001"),
    "a policy of an architecture": text().replace("offsets_interval_ms: 1000", "offsets_interval_ms: 999"),
    "an architecture less": text().replace("  dsbs: {coordinator: dsbs}\n", ""),
    "the name of an architecture": text().replace("  dsbs:", "  dsbs-2:"),
    "a cell more": text().replace("[8B, 32B]", "[8B, 32B, 64B]"),
    "processors that roles are bound to": text() + "pin: {brokers: 0}\n",
    "the name of an experiment": text().replace("message-size", "message-sizes"),
}


@pytest.mark.parametrize("change", SAME)
def test_the_hash_stays_where_what_is_measured_stays(change: str) -> None:
    assert resolve(spec(SAME[change]), "paper").spec_hash == resolve(spec(text()), "paper").spec_hash


@pytest.mark.parametrize("change", DIFFERENT)
def test_the_hash_changes_with_what_is_measured(change: str) -> None:
    assert resolve(spec(DIFFERENT[change]), "paper").spec_hash != resolve(spec(text()), "paper").spec_hash


UNTIL = text(
    profiles="profiles: {paper: {experiments: message-size, messages: 300, tries: 2, "
    "until: {ratio_interval: 10%, tries_max: 5}}}"
)


def test_with_until_all_blocks_that_may_be_needed_are_planned_and_only_the_tries_are_sure() -> None:
    plan = resolve(spec(UNTIL), "paper")
    assert plan.until == Until(ratio_interval=0.1, tries_max=5)
    assert [block.number for block in plan.blocks] == [1, 2, 3, 4, 5]
    assert {trial.block for trial in plan.trials if plan.is_sure(trial)} == {1, 2}


def test_until_changes_nothing_that_is_measured() -> None:
    until, plain = resolve(spec(UNTIL), "paper"), resolve(spec(UNTIL), "paper", tries=2)
    assert plain.until is None
    assert until.spec_hash == plain.spec_hash
    assert plain.trials == tuple(trial for trial in until.trials if trial.block <= 2)


def test_tries_of_the_command_line_are_added_behind_those_that_were_there() -> None:
    three, five = resolve(spec(text()), "steady"), resolve(spec(text()), "steady", tries=5)
    assert three.spec_hash == five.spec_hash
    assert five.trials[: len(three.trials)] == three.trials
    assert all(map(five.is_sure, five.trials))


def test_roles_may_be_bound_to_processors() -> None:
    pin = resolve(spec(text() + "pin: {brokers: [0, 2], clients: 1}\n"), "steady").pin
    assert pin == Pin(brokers=(0, 2), coordinator=(), clients=(1,))
    found = {role: pin.of_role(role) for role in ("broker", "coordinator", "producer", "consumer", "reader", "network")}
    assert found == {
        "broker": (0, 2), "coordinator": (), "producer": (1,), "consumer": (1,), "reader": (), "network": (),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pin", "message"),
    [
        ("{brokers: [0, 0]}", "brokers has 0 twice"),
        ("{brokers: []}", "brokers is an empty list"),
        ("{broker: 0}", "unknown key 'broker' in pin; did you mean 'brokers'?"),
        ("{clients: all}", "clients cannot be 'all': it must be a whole number from 0 to 4,095"),
        ("0", "pin must be a mapping"),
    ],
)
def test_a_pin_that_cannot_be_is_refused(pin: str, message: str) -> None:
    assert message in refusal(f"{text()}pin: {pin}\n").message


def test_a_plan_of_another_file_has_a_results_folder_of_its_own() -> None:
    from workloads.spec.reader import read
    from workloads.spec.yaml_source import read_text

    mine = read(read_text(text(), "some/mine.yaml"), "some/mine.yaml")
    assert resolve(mine, "paper").name == "mine-paper"
    assert resolve(spec(text()), "paper").name == "paper"


def test_a_plan_as_data_holds_every_setting_of_every_cell() -> None:
    found = resolve(spec(text()), "steady").as_json()
    assert found["tries"] == [1, 2, 3]
    assert found["length"] == {"messages": None, "duration_s": 1.0, "messages_min": 1000}
    assert found["cells"][0] == {
        "id": "message_size=8,batch_size=20,mode=split",
        "experiments": ["message-size"],
        "message_size": "8",
        "batch_size": "20",
        "mode": "split",
        "brokers": "3",
        "partitions": "3",
        "replication_factor": "1",
        "acks": "1",
        "fsync": "never",
        "topology": "loopback",
        "rtt_ms": "0",
        "driver": "grpc",
        "producers": "1",
        "consumers": "1",
        "commit": "every_batch",
        "fetch": "batch",
        "rate": "max",
    }
