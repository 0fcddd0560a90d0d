from __future__ import annotations

import itertools
import random

import pytest

from tests.unit.workloads.spec.files import EXPERIMENTS, FILE, experiment, refusal, spec, text
from workloads.errors import PlanError
from workloads.spec.plan import BLOCKS_FACTOR_MAX, Block, Plan, resolve
from workloads.spec.settings import Length, Pin

ARCHITECTURE_NAMES = ["zookeeper", "zookeeper-watch", "dsbs", "static"]


def cells_in_order(block: Block) -> list[str]:
    return [visit.cell.id for fleet in block.fleets for visit in fleet.visits]


def loads(load: str = "[30%, 60%]", mode: str = "load", extra: str = "") -> Plan:
    source = experiment(f"load: {load}{extra}", mode=mode).replace("messages: 1000000000", "duration_s: 1")
    return resolve(spec(source), "steady")


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
    found = sorted((trial.cell.id, trial.architecture.name, trial.block) for trial in plan.trials)
    assert found == expected


def test_every_trial_has_an_id_and_a_position_of_its_own() -> None:
    plan = resolve(spec(text()), "steady")
    assert len({trial.id for trial in plan.trials}) == len(plan.trials)
    assert [trial.position for trial in plan.trials] == list(range(1, len(plan.trials) + 1))
    assert plan.trials[0].id.count("/") == 2
    assert "message_size=8,batch_size=20,mode=split/dsbs/2" in {trial.id for trial in plan.trials}


def test_a_visit_has_a_trial_of_its_cell_on_every_architecture_in_the_files_order() -> None:
    plan = resolve(spec(text()), "paper")
    for block in plan.blocks:
        for visit in (visit for fleet in block.fleets for visit in fleet.visits):
            assert [trial.architecture.name for trial in visit.trials] == ARCHITECTURE_NAMES
            assert {(trial.cell.id, trial.block) for trial in visit.trials} == {(visit.cell.id, block.number)}
            assert {trial.length for trial in visit.trials} == {Length(30_000, None)}


def test_each_block_meets_every_cell_once_and_in_an_order_of_its_own() -> None:
    plan = resolve(spec(text()), "paper")
    orders = [tuple(cells_in_order(block)) for block in plan.blocks]
    assert all(sorted(order) == sorted(cell.id for cell in plan.cells) for order in orders)
    assert len(set(orders)) == len(orders) == 4


def test_the_same_seed_gives_the_same_order_on_every_python() -> None:
    """Written down, so that a Python that would draw otherwise is seen."""
    plan = resolve(spec(text()), "steady")
    orders = [
        " ".join(f"{visit.cell.message_size}/{visit.cell.batch_size}/{visit.cell.mode}" for visit in fleet.visits)
        for block in plan.blocks[:2]
        for fleet in block.fleets
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
    assert {trial.id for trial in one.trials} == {trial.id for trial in other.trials}


def test_a_profile_may_say_itself_how_long_its_clusters_are_warmed() -> None:
    profiles = """profiles:
  long: {experiments: batch-size, messages: 30000, tries: 1, warmup: 3}
  other: {experiments: batch-size, messages: 30000, tries: 1}"""
    found = spec(text(profiles=profiles, trials="trials: {warmup: 1}"))
    plans = [resolve(found, name) for name in ("long", "other")]
    assert [plan.warmup for plan in plans] == [3, 1]
    assert plans[0].spec_hash != plans[1].spec_hash
    as_long = spec(text(profiles=profiles.replace("warmup: 3", "warmup: 1")))
    assert resolve(as_long, "long").spec_hash == plans[1].spec_hash


def test_all_architectures_are_up_side_by_side_once_for_each_block_and_settings_of_clusters() -> None:
    plan = resolve(spec(experiment("brokers: [3, 4, 5]", mode="[split, streaming]")), "steady")
    (block,) = plan.blocks
    assert sorted(fleet.cluster.brokers for fleet in block.fleets) == [3, 4, 5]
    for fleet in block.fleets:
        assert [each.name for each in fleet.architectures] == ARCHITECTURE_NAMES
        assert {trial.cell.cluster for visit in fleet.visits for trial in visit.trials} == {fleet.cluster}
        assert sorted(visit.cell.mode for visit in fleet.visits) == ["split", "streaming"]


def test_settings_of_the_workload_share_clusters() -> None:
    swept = experiment("producers: [1, 2], commit: [end, every_batch], in_flight: [1, 5], fetch_ahead: [2, 20]")
    assert [len(block.fleets) for block in resolve(spec(swept), "steady").blocks] == [1]


def test_requests_under_way_and_batches_fetched_ahead_are_axes() -> None:
    plan = resolve(spec(experiment("in_flight: [1, 5], fetch_ahead: [2, 20]")), "steady")
    assert [cell.id.removeprefix("message_size=32,batch_size=20,mode=split,") for cell in plan.cells] == [
        "in_flight=1,fetch_ahead=2", "in_flight=1,fetch_ahead=20",
        "in_flight=5,fetch_ahead=2", "in_flight=5,fetch_ahead=20",
    ]  # fmt: skip


def test_cells_in_mode_load_are_told_apart_by_their_load_and_share_what_is_sustained() -> None:
    plan = loads(extra=", in_flight: [1, 5]")
    assert [cell.id for cell in plan.cells] == [
        f"message_size=32,batch_size=20,mode=load,in_flight={many},load={load}%" for many in (1, 5) for load in (30, 60)
    ]
    assert [cell.load for cell in plan.cells] == [0.3, 0.6] * 2
    keys = [cell.sustained_key for cell in plan.cells]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert "load=" not in keys[0]


def test_a_single_load_is_named_in_its_cell_and_cells_of_other_modes_name_none() -> None:
    one = "{message_size: 32B, batch_size: 20, mode: [split, streaming]}"
    two = "{message_size: 32B, batch_size: 20, mode: load, load: 60%}"
    source = text(
        experiments=f"experiments: {{one: {one}, two: {two}}}",
        profiles="profiles: {p: {experiments: [one, two], duration_s: 1, tries: 1}}",
    )
    assert [cell.id for cell in resolve(spec(source), "p").cells] == [
        "message_size=32,batch_size=20,mode=split",
        "message_size=32,batch_size=20,mode=streaming",
        "message_size=32,batch_size=20,mode=load,load=60%",
    ]


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
    assert {trial.length for trial in plan.trials} == {Length(500, None)}
    assert plan.spec_hash != plain.spec_hash
    assert resolve(spec(text()), "steady", messages=30_000).spec_hash == plain.spec_hash


def test_messages_of_the_command_line_must_be_a_request_at_least() -> None:
    with pytest.raises(PlanError, match="19 messages are less than one request of each producer in message_size=8"):
        resolve(spec(text()), "paper", messages=19)


def test_messages_of_the_command_line_do_not_fit_a_load() -> None:
    source = experiment("load: 60%", mode="load").replace("messages: 1000000000", "duration_s: 1")
    with pytest.raises(PlanError, match="load=60% is measured by time: mode load takes no number of messages"):
        resolve(spec(source), "steady", messages=100)


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
    "a budget and how well to know": text().replace("tries: 4", "tries: 4, budget_s: 99, precision: 5%"),
    "a question": text().replace("tries: 4", "tries: 4, primary: [[dsbs, zookeeper]]"),
    "one round that is written out": text().replace("tries: 4", "tries: 4, rounds: 1"),
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
    "rounds": text().replace("tries: 4", "tries: 4, rounds: 2"),
    "requests under way": text(workload="workload: {driver: grpc, in_flight: 1}"),
    "batches fetched ahead": text(workload="workload: {driver: grpc, fetch_ahead: 2}"),
    "how long requests gather": text(cluster="cluster: {gather_ms: 0}"),
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


def test_the_lead_of_a_window_is_part_of_what_is_measured_and_a_load_is_too() -> None:
    one, other = (text().replace("duration_s: 1,", f"duration_s: 1, lead_s: {lead},") for lead in ("0.1", "0.2"))
    hashes = [resolve(spec(source), "steady").spec_hash for source in (text(), one, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert loads("60%").spec_hash != loads("61%").spec_hash


BUDGET = text(profiles="profiles: {paper: {experiments: message-size, messages: 300, tries: 2, budget_s: 60}}")


def test_with_a_budget_more_blocks_are_planned_and_only_the_tries_are_sure() -> None:
    plan = resolve(spec(BUDGET), "paper")
    assert [block.number for block in plan.blocks] == list(range(1, 2 * BLOCKS_FACTOR_MAX + 1))
    assert [block.number for block in plan.blocks if plan.is_sure(block)] == [1, 2]
    assert {trial.block for trial in plan.sure_trials} == {1, 2}
    assert plan.sure_trials == plan.trials[: len(plan.sure_trials)]


def test_without_a_budget_there_are_the_tries_and_no_more() -> None:
    plan = resolve(spec(text()), "paper")
    assert [block.number for block in plan.blocks] == [1, 2, 3, 4]
    assert plan.sure_trials == plan.trials


def test_a_budget_changes_nothing_that_is_measured_and_tries_of_the_command_line_take_its_place() -> None:
    budget, plain = resolve(spec(BUDGET), "paper"), resolve(spec(BUDGET), "paper", tries=2)
    assert (budget.effort.budget_s, plain.effort.budget_s) == (60.0, None)
    assert budget.spec_hash == plain.spec_hash
    assert plain.trials == budget.sure_trials


def test_tries_of_the_command_line_are_added_behind_those_that_were_there() -> None:
    three, five = resolve(spec(text()), "steady"), resolve(spec(text()), "steady", tries=5)
    assert three.spec_hash == five.spec_hash
    assert five.trials[: len(three.trials)] == three.trials
    assert all(map(five.is_sure, five.blocks))


def test_a_part_keeps_the_places_of_its_trials_and_the_questions_that_it_can_answer() -> None:
    source = text().replace("tries: 3", "tries: 3, primary: [[dsbs, zookeeper], [dsbs, static]]")
    whole = resolve(spec(source), "steady")
    part = resolve(spec(source), "steady", ["architecture=dsbs", "architecture=static", "try=2", "mode=split"])
    assert set(part.trials) < set(whole.trials)
    assert [trial.position for trial in part.trials] == sorted(trial.position for trial in part.trials)
    assert [block.number for block in part.blocks] == [2]
    assert whole.primary == (("dsbs", "zookeeper"), ("dsbs", "static"))
    assert part.primary == (("dsbs", "static"),)
    for fleet in part.blocks[0].fleets:
        assert [each.name for each in fleet.architectures] == ["dsbs", "static"]


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
    assert found["length"] == {"messages": None, "duration_s": 1.0, "lead_s": 0.1}
    assert found["effort"] == {"tries": 3, "rounds": 1, "budget_s": None, "precision": 0.1}
    assert (found["primary"], found["warmup"], found["timeout_s"]) == ([], 1, 120.0)
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
        "gather_ms": "2",
        "driver": "grpc",
        "producers": "1",
        "consumers": "1",
        "commit": "every_batch",
        "fetch": "batch",
        "rate": "max",
        "in_flight": "5",
        "fetch_ahead": "20",
        "load": "none",
    }
