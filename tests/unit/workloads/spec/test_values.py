"""Each key takes what it should, and refuses the rest at its place, with the value and what is allowed."""

from __future__ import annotations

import re

import pytest

from tests.unit.workloads.spec.files import FILE, experiment, place_of, refusal, spec, text
from workloads.spec.settings import ACKS_ALL, Architecture, ClusterSettings, Effort, Length, Point, WorkloadSettings
from workloads.spec.spec import TrialSettings


def only_point(source: str) -> Point:
    (one,) = spec(source).experiments
    (point,) = one.points
    return point


def test_a_file_becomes_values() -> None:
    found = spec(text())
    assert found.file == FILE
    assert [each.name for each in found.experiments] == ["message-size", "batch-size"]
    assert [each.name for each in found.profiles] == ["steady", "paper"]
    assert found.trials == TrialSettings(seed=2017, warmup=1, timeout_s=120)
    assert found.architectures == (
        Architecture(
            "zookeeper", "zookeeper", (("metadata", "lookup"), ("offsets", "zookeeper_each"), ("delay_us", 0))
        ),
        Architecture(
            "zookeeper-watch",
            "zookeeper",
            (
                ("metadata", "watch"),
                ("offsets", "zookeeper_interval"),
                ("offsets_interval_ms", 1000),
                ("delay_us", 0),
            ),
        ),
        Architecture("dsbs", "dsbs", (("offsets", "journal_copied"), ("delay_us", 0))),
        Architecture("static", "static", (("metadata", "memory"), ("offsets", "journal"), ("delay_us", 0))),
    )
    steady, paper = found.profiles
    assert steady.length == Length(messages=None, duration_s=1.0, lead_s=0.1)
    assert steady.effort == Effort(tries=3, rounds=1, budget_s=None, precision=0.1)
    assert (steady.primary, steady.timeout_s, steady.experiments) == ((), 120, ("message-size", "batch-size"))
    assert steady.architectures == ("zookeeper", "zookeeper-watch", "dsbs", "static")
    assert paper.length == Length(messages=30_000, duration_s=None)


def test_an_experiment_is_the_product_of_its_lists_in_their_order() -> None:
    first, _ = spec(text()).experiments
    assert [(point.message_size, point.mode) for point in first.points] == [
        (8, "split"),
        (8, "streaming"),
        (32, "split"),
        (32, "streaming"),
    ]


def test_what_is_not_said_has_its_documented_default() -> None:
    source = text(cluster="cluster: {}", workload="workload: {}", trials="trials: {}")
    found = spec(source)
    assert found.experiments[0].points[0] == Point(
        ClusterSettings(3, 3, 1, acks=1, fsync="never", fsync_interval_ms=None),
        WorkloadSettings(
            "kafka", 1, 1, commit="every_batch", commit_interval_ms=None, fetch="batch", rate=None,
            in_flight=5, fetch_ahead=20,
        ),
        message_size=8,
        batch_size=20,
        mode="split",
        load=None,
    )  # fmt: skip
    assert found.trials == TrialSettings(seed=2017, warmup=1, timeout_s=120)
    assert spec(text(cluster="", workload="", trials="")) == found


def test_zookeepers_policies_default_to_the_papers() -> None:
    found = spec(text(architectures="architectures: {zk: {coordinator: zookeeper}}"))
    assert found.architectures == (
        Architecture("zk", "zookeeper", (("metadata", "lookup"), ("offsets", "zookeeper_each"), ("delay_us", 0))),
    )


def test_every_setting_of_cluster_and_workload_can_be_overridden_in_an_experiment() -> None:
    found = only_point(
        experiment(
            "brokers: 5, partitions: 8, replication_factor: 2, acks: all, fsync: always, driver: kafka, producers: 2, "
            "consumers: 4, commit: end, fetch: stream, rate: 1000.5, in_flight: 1, fetch_ahead: 2, gather_ms: 0"
        )
    )
    assert found.cluster == ClusterSettings(5, 8, 2, acks=ACKS_ALL, fsync="always", fsync_interval_ms=None, gather_ms=0)
    assert found.workload == WorkloadSettings(
        "kafka", 2, 4, commit="end", commit_interval_ms=None, fetch="stream", rate=1000.5, in_flight=1, fetch_ahead=2
    )


def test_cluster_and_workload_may_sweep_too_and_an_experiment_replaces_the_sweep() -> None:
    swept = spec(text(cluster="cluster: {brokers: [3, 4, 5]}")).experiments[0]
    assert [point.cluster.brokers for point in swept.points[:3]] == [3, 4, 5]
    fixed = experiment("brokers: 4").replace("cluster: {brokers: 3,", "cluster: {brokers: [3, 5],")
    assert only_point(fixed).cluster.brokers == 4


def test_policies_may_say_how_often() -> None:
    found = only_point(experiment("fsync: {interval_ms: 50}, commit: {interval_ms: 100}"))
    assert (found.cluster.fsync, found.cluster.fsync_interval_ms) == ("interval", 50)
    assert (found.workload.commit, found.workload.commit_interval_ms) == ("interval", 100)
    several = spec(experiment("commit: [every_batch, {interval_ms: 100}, {interval_ms: 1000}, end]")).experiments[0]
    assert [point.workload.as_axes()["commit"] for point in several.points] == [
        "every_batch",
        "interval_100ms",
        "interval_1000ms",
        "end",
    ]


def test_sizes_may_be_lists_of_sizes_and_ranges() -> None:
    (one,) = spec(experiment(size="[8B..32B, 100B, 1KB]")).experiments
    assert [point.message_size for point in one.points] == [8, 16, 32, 100, 1024]


def test_numbers_may_group_their_digits_in_threes() -> None:
    found = spec(text().replace("messages: 30000", "messages: 10_000_000"))
    assert found.profiles[1].length.messages == 10_000_000


def test_quotes_make_no_difference_since_each_key_says_what_its_value_is() -> None:
    quoted = experiment("acks: '1', brokers: \"3\"", size="'32B'", batch='"20"', mode="'split'")
    assert only_point(quoted) == only_point(experiment())


def test_a_list_of_one_is_the_value() -> None:
    assert only_point(experiment(size="[32B]", batch="[20]")) == only_point(experiment())


def test_a_profile_may_name_one_experiment_without_a_list_and_choose_architectures() -> None:
    source = text(
        profiles="profiles: {a: {experiments: batch-size, architectures: [static, dsbs], messages: 100, tries: 1}}"
    )
    (profile,) = spec(source).profiles
    assert profile.experiments == ("batch-size",)
    assert profile.architectures == ("static", "dsbs")


def test_a_profile_may_have_a_timeout_of_its_own() -> None:
    found = spec(text().replace("messages: 30000", "messages: 30000, timeout_s: 600"))
    assert [profile.timeout_s for profile in found.profiles] == [120, 600]


def test_a_profile_says_how_much_is_measured_and_which_questions_it_is_for() -> None:
    more = "rounds: 4, budget_s: 400, precision: 2.5%, lead_s: 0.5, primary: [[dsbs, zookeeper], [static, dsbs]]"
    steady, paper = spec(text().replace("duration_s: 1,", f"duration_s: 1, {more},")).profiles
    assert steady.effort == Effort(tries=3, rounds=4, budget_s=400.0, precision=0.025)
    assert steady.length == Length(messages=None, duration_s=1.0, lead_s=0.5)
    assert steady.primary == (("dsbs", "zookeeper"), ("static", "dsbs"))
    assert (paper.effort, paper.primary) == (Effort(tries=4), ())


def test_a_load_is_a_share_of_what_is_sustained_and_an_axis() -> None:
    source = experiment("load: [30%, 62.5%, 100%]", mode="load").replace("messages: 1000000000", "duration_s: 1")
    (one,) = spec(source).experiments
    assert [point.load for point in one.points] == [0.3, 0.625, 1.0]
    assert [point.as_axes()["load"] for point in one.points] == ["30%", "62.5%", "100%"]
    assert only_point(experiment()).as_axes()["load"] == "none"


def test_idle_consumers_may_be_asked_for_and_are_no_setting_that_is_measured() -> None:
    idle = only_point(experiment("partitions: 1, consumers: 2, idle_consumers: true"))
    assert idle.workload.consumers == 2
    swept = text(workload="workload: {idle_consumers: true, consumers: [1, 4]}")
    assert spec(swept).experiments[0].points[1].workload.consumers == 4


# Every key that is a number: what a person or YAML could make of one, and must not here.
NOT_WHOLE = [
    "no",
    "on",
    "1e3",
    "012",
    "0x10",
    "0b1",
    "1:30",
    ".nan",
    ".inf",
    "1.0",
    "+1",
    "-1",
    "1_0",
    "1_0000",
    "٣",
    "~",
]
TOO_LARGE = ["100000000000", "9" * 5_000]
WHOLE_KEYS = {
    "brokers": "a whole number from 1 to 32",
    "partitions": "a whole number from 1 to 1,024",
    "replication_factor": "a whole number from 1 to 32",
    "producers": "a whole number from 1 to 64",
    "consumers": "a whole number from 1 to 64",
    "in_flight": "a whole number from 1 to 1,000",
    "fetch_ahead": "a whole number from 1 to 10,000",
}


@pytest.mark.parametrize("value", [*NOT_WHOLE, *TOO_LARGE, "0"])
@pytest.mark.parametrize("key", WHOLE_KEYS)
def test_a_whole_number_is_plain_digits_within_its_bounds(key: str, value: str) -> None:
    source = experiment(f"{key}:   {value}")
    error = refusal(source)
    line, column = place_of(source, f"   {value}}}")
    assert (error.line, error.column) == (line, column + 3)
    assert f"{key} cannot be '{value[:40]}" in error.message
    assert WHOLE_KEYS[key] in error.message


WRONG: dict[str, tuple[str, str]] = {
    "acks": ("2", "acks cannot be '2': it must be 0, 1 or all"),
    "acks ": ("-1", "it must be 0, 1 or all"),
    "acks  ": ("ALL", "it must be 0, 1 or all"),
    "fsync": ("interval_ms", "it must be never, always or {interval_ms: N}"),
    "fsync ": ("no", "fsync cannot be 'no'"),
    "fsync  ": ("{interval_ms: 0}", "interval_ms cannot be '0': it must be a whole number from 1 to 3,600,000"),
    "fsync   ": ("{}", "fsync lacks the key 'interval_ms'"),
    "fsync    ": ("{interval: 5}", "unknown key 'interval' in fsync; did you mean 'interval_ms'?"),
    "commit": ("never", "it must be every_batch, end or {interval_ms: N}"),
    "commit ": ("{interval_ms: [1, 2]}", "interval_ms must be one value, not a list"),
    "driver": ("rabbit", "driver cannot be 'rabbit': it must be kafka or grpc"),
    "fetch": ("Batch", "it must be batch or stream"),
    "rate": ("0", "rate cannot be '0': it must be a number from 0.001 to 1,000,000,000"),
    "rate ": ("1e3", "a number from 0.001"),
    "rate  ": (".5", "a number from 0.001"),
    "rate   ": (".inf", "a number from 0.001"),
    "rate    ": ("-5", "a number from 0.001"),
    "rate     ": ("minimum", "a number from 0.001"),
    "rate      ": ("1000/s", "a number from 0.001"),
    "brokers": ("[]", "brokers is an empty list"),
    "brokers ": ("[3, 3]", "brokers has the same value twice"),
    "brokers  ": ("[[3]]", "brokers must be one value, not a list"),
    "brokers   ": ("{interval_ms: 3}", "brokers must be one value, not a mapping"),
    "brokers    ": ("", "brokers has no value; allowed: a whole number from 1 to 32"),
    "brokers     ": ("''", "brokers has no value"),
    "idle_consumers": ("yes", "idle_consumers cannot be 'yes': it must be true or false"),
    "idle_consumers ": ("[true, false]", "idle_consumers must be one value, not a list"),
    "rate       ": ("[max, 5, 5.0]", "rate has the same value twice"),
    "topology": ("docker", "topology cannot be 'docker': it must be loopback, namespaces or hosts"),
    "rtt_ms": ("1", "it must be 0, or {broker_zookeeper: N, broker_broker: N, client_broker: N}"),
    "rtt_ms ": ("{client: 1}", "unknown key 'client' in rtt_ms; did you mean 'client_broker'?"),
    "rtt_ms  ": ("{client_broker: -1}", "client_broker cannot be '-1': it must be a number from 0 to 10,000"),
    "rtt_ms   ": ("[0, {}]", "rtt_ms has the same value twice"),
    "rtt_ms    ": ("{client_broker: 1}", "rtt_ms needs topology: namespaces"),
    "gather_ms": ("1001", "gather_ms cannot be '1001': it must be a whole number from 0 to 1,000"),
    "gather_ms ": ("0.5", "a whole number from 0 to 1,000"),
    "in_flight": ("1001", "in_flight cannot be '1001'"),
    "fetch_ahead": ("10001", "fetch_ahead cannot be '10001'"),
    "hosts": ("[]", "unknown key 'hosts' in experiment 'one'"),
}


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_value_is_refused_with_what_is_allowed(key: str) -> None:
    value, message = WRONG[key]
    source = experiment(f"{key}: {value}")
    error = refusal(source)
    assert message in error.message
    assert error.line == place_of(source, "experiments: {one")[0]
    assert error.column is not None
    assert error.column > place_of(source, "mode: split")[1]


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("32", "message_size cannot be '32': it has no unit; write 32B"),
        ("7B", "a size from 8B to 15MB"),
        ("4B..32B", "a size from 8B to 15MB"),
        ("32MB", "a size from 8B to 15MB"),
        ("8B..100B", "it does not double"),
        ("[8B..32B, 16B]", "message_size has the same value twice"),
        ("[1KB, 1024B]", "message_size has the same value twice"),
        ("large", "it must be a whole number and B, KB or MB"),
    ],
)
def test_a_wrong_size_is_refused(size: str, message: str) -> None:
    assert message in refusal(experiment(size=size)).message


@pytest.mark.parametrize("mode", ["splitt", "Split", "both", "[split, streamin]"])
def test_an_unknown_mode_is_refused_with_the_known_ones(mode: str) -> None:
    message = refusal(experiment(mode=mode)).message
    assert re.search(r"mode cannot be '\w+': it must be split, streaming or load", message)


def test_a_message_starts_with_file_line_and_column() -> None:
    source = text(cluster="cluster:\n  replication_factor: 1\n  brokres: 3")
    assert str(refusal(source)) == f"{FILE}:4:3: unknown key 'brokres' in cluster; did you mean 'brokers'?"


def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    assert str(refusal(text(cluster='cluster: {"\\e[31m\\n": 3}'))).isprintable()


def test_architectures_of_one_coordinator_may_differ_by_name_alone() -> None:
    found = spec(text(architectures="architectures: {a: {coordinator: static}, b: {coordinator: static}}"))
    assert [each.name for each in found.architectures] == ["a", "b"]


def test_another_system_joins_a_profile_by_name_alone() -> None:
    files = "a: {coordinator: static}, b: {system: external, bootstrap: 'x:1'}"
    profiles = "profiles: {p: {experiments: batch-size, messages: 100, tries: 1}}"
    (profile,) = spec(text(architectures=f"architectures: {{{files}}}", profiles=profiles)).profiles
    assert profile.architectures == ("a",)
