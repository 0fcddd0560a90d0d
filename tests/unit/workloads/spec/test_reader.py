"""What no single key can show: sections that are missing, names that are unknown, settings that contradict."""

from __future__ import annotations

import pytest

from brokers.config import Limits
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.server import _options
from brokers.wire.batch import RecordToSend, encode_batch
from tests.unit.workloads.spec.files import EXPERIMENTS, PROFILES, experiment, place_of, refusal, spec, text
from workloads.spec import keys


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("- version: 1\n", "the file must be a mapping of keys to values, not a list"),
        ("just text\n", "the file must be a mapping of keys to values, not 'just text'"),
        ("{}\n", "the file lacks the key 'version'"),
        (text().replace("version: 1\n", ""), "the file lacks the key 'version'"),
        (text(experiments="").replace("[message-size, batch-size]", "[x]"), "the file lacks the key 'experiments'"),
        (text(profiles=""), "the file lacks the key 'profiles'"),
        (text(architectures=""), "the file lacks the key 'architectures'"),
        (text(architectures="architectures:"), "architectures must be a mapping of keys to values, not nothing"),
        (text(architectures="architectures: {}"), "architectures must have from 1 to 200 entries; it has 0"),
        (text(experiments="experiments: {}"), "experiments must have from 1 to 200 entries"),
        (text(profiles="profiles: {}"), "profiles must have from 1 to 200 entries"),
        (text(cluster="cluster: [3]"), "cluster must be a mapping of keys to values, not a list"),
        (text(workload="workload: fast"), "workload must be a mapping of keys to values, not 'fast'"),
        (text(trials="trials: 3"), "trials must be a mapping"),
        (text(trials="trails: {seed: 1}"), "unknown key 'trails' in the file; did you mean 'trials'?"),
        (text().replace("version: 1", "version: 2"), "version cannot be '2': it must be 1"),
        (text().replace("version: 1", "version: 2\nthings: {}"), "version cannot be '2': it must be 1"),
        (text(workload="workload: {brokers: 3}"), "unknown key 'brokers' in workload"),
        (text(workload="workload: {mode: split}"), "unknown key 'mode' in workload"),
    ],
)
def test_a_section_that_is_missing_or_misshapen_is_refused(source: str, message: str) -> None:
    assert message in refusal(source).message


@pytest.mark.parametrize(
    ("architecture", "piece", "message"),
    [
        ("{}", "{}", "architecture 'x' lacks the key 'coordinator'"),
        ("{coordinator: raft}", "raft", "coordinator cannot be 'raft': it must be static, zookeeper or dsbs"),
        ("{coordinator: [dsbs]}", "[dsbs]", "coordinator must be one value, not a list"),
        (
            "{coordinator: dsbs, metadata: lookup}",
            "metadata",
            "cannot have 'metadata': only the coordinator static, the coordinator zookeeper has that choice",
        ),
        (
            "{coordinator: static, offsets: zookeeper_each}",
            "zookeeper_each",
            "offsets cannot be 'zookeeper_each': it must be memory or journal",
        ),
        (
            "{coordinator: zookeeper, offsets: every_commit}",
            "every_commit",
            "offsets cannot be 'every_commit': it must be memory, zookeeper_each or zookeeper_interval",
        ),
        ("{coordinator: dsbs, delay_us: -1}", "-1", "a whole number from 0 to 10,000,000"),
        ("{coordinator: dsbs, offsets_interval_ms: 5}", "offsets_interval_ms", "cannot have 'offsets_interval_ms'"),
        (
            "{coordinator: zookeeper, metadata: cache}",
            "cache",
            "metadata cannot be 'cache': it must be watch, lookup or lookup_each",
        ),
        (
            "{coordinator: zookeeper, offsets: zookeeper_interval}",
            "zookeeper_interval}",
            "lacks the key 'offsets_interval_ms'",
        ),
        (
            "{coordinator: zookeeper, offsets_interval_ms: 5}",
            "offsets_interval_ms",
            "without offsets: zookeeper_interval",
        ),
        (
            "{coordinator: zookeeper, offsets: zookeeper_each, offsets_interval_ms: 5}",
            "offsets_interval_ms",
            "without offsets: zookeeper_interval",
        ),
        (
            "{coordinator: zookeeper, offsets: zookeeper_interval, offsets_interval_ms: 0}",
            "0}}",
            "a whole number from 1",
        ),
        ("{coordinater: dsbs}", "coordinater", "unknown key 'coordinater' in architecture 'x'; did you mean"),
        ("dsbs", "dsbs", "architecture 'x' must be a mapping of keys to values, not 'dsbs'"),
    ],
)
def test_an_architecture_that_cannot_be_is_refused_where_it_is_wrong(
    architecture: str, piece: str, message: str
) -> None:
    source = text(architectures=f"architectures: {{x: {architecture}}}")
    error = refusal(source)
    assert message in error.message
    assert (error.line, error.column) == place_of(source, piece)


@pytest.mark.parametrize("name", ["X", "a_b", "../x", "a/b", "-a", "a b", "''", "x" * 41, "é", "a.b"])
@pytest.mark.parametrize("section", ["architectures", "experiments", "profiles"])
def test_a_name_that_could_not_be_a_file_name_is_refused(section: str, name: str) -> None:
    error = refusal(text(**{section: f"{section}: {{{name}: {{}}}}"}))
    assert "small letters, digits and hyphens" in error.message


@pytest.mark.parametrize("key", ["message_size", "batch_size", "mode"])
def test_an_experiment_that_does_not_say_its_cells_is_refused(key: str) -> None:
    keys = {"message_size": "8B", "batch_size": "1", "mode": "split"}
    del keys[key]
    body = ", ".join(f"{each}: {value}" for each, value in keys.items())
    assert (
        f"experiment 'one' lacks the key '{key}'"
        in refusal(text(experiments=f"experiments: {{one: {{{body}}}}}")).message
    )


IMPOSSIBLE = [
    ("replication_factor: 4", "4}", "replication_factor 4 needs as many brokers, not 3"),
    ("replication_factor: [1, 4]", "4]", "replication_factor 4 needs as many brokers, not 3"),
    ("brokers: [5, 2], replication_factor: 3", "3}}\n", "replication_factor 3 needs as many brokers, not 2"),
    ("consumers: 4", "4}", "4 consumers on 3 partitions"),
    ("consumers: 4, idle_consumers: false", "4, idle", "add idle_consumers: true"),
    ("partitions: [4, 2], consumers: [2, 4]", "4]}", "4 consumers on 2 partitions"),
]


@pytest.mark.parametrize(("extra", "piece", "message"), IMPOSSIBLE)
def test_settings_that_contradict_each_other_are_refused_where_they_stand(extra: str, piece: str, message: str) -> None:
    source = experiment(extra)
    error = refusal(source)
    assert message in error.message
    assert error.message.startswith("experiment 'one': ")
    assert (error.line, error.column) == place_of(source, piece)


def test_a_contradiction_with_a_default_is_shown_at_the_key_that_the_file_has() -> None:
    source = text(cluster="cluster: {}", workload="workload: {consumers: 4}")
    error = refusal(source)
    assert "4 consumers on 3 partitions" in error.message
    assert (error.line, error.column) == place_of(source, "4}\nexperiments")


def test_acks_of_all_with_one_replica_is_allowed() -> None:
    assert spec(experiment("acks: all")).experiments[0].points[0].cluster.acks == -1


@pytest.mark.parametrize(
    ("size", "batch", "found"),
    [
        ("8MB", 2, "16,777,216"),
        ("1MB", 16, "16,777,216"),
        ("1573B", 10_000, "15,730,000"),
        ("7864321B", 2, "15,728,642"),
    ],
)
def test_a_request_larger_than_brokers_store_is_refused_where_it_stands(size: str, batch: int, found: str) -> None:
    source = experiment(size=size, batch=str(batch))
    error = refusal(source)
    assert f"is a request of {found} bytes; at most 15,728,640 are allowed" in error.message
    assert (error.line, error.column) == place_of(source, f"{batch}, mode")


@pytest.mark.parametrize(
    ("size", "batch"), [("15MB", 1), ("7864320B", 2), ("1MB", 15), ("128KB", 100), ("1572B", 10_000)]
)
def test_the_largest_requests_are_allowed(size: str, batch: int) -> None:
    assert spec(experiment(size=size, batch=str(batch)))


@pytest.mark.parametrize(("size", "batch"), [("16MB", "1"), ("15728641B", "1"), ("8B", "10001")])
def test_a_message_or_a_batch_that_no_request_holds_is_refused_by_itself(size: str, batch: str) -> None:
    assert "it must be a" in refusal(experiment(size=size, batch=batch)).message


@pytest.mark.parametrize("batch", [1, 2, 1_000, keys.BATCH_MESSAGES_MAX])
def test_brokers_take_the_largest_request_of_the_plan_with_all_that_the_formats_add(batch: int) -> None:
    """By what they are started with: a batch as it is stored, and a request of either protocol."""
    limits = Limits()
    value = b"x" * (keys.REQUEST_BYTES_MAX // batch)
    stored = encode_batch([RecordToSend(value=value, timestamp=number) for number in range(batch)])
    assert len(stored) <= limits.message_bytes_max
    assert len(stored) + 10_000 <= limits.request_bytes_max, "with the head of a request"
    asked = pb.ProduceRequest(topic="t" * 249, records=[pb.Record(value=value)] * batch)
    assert asked.ByteSize() <= dict(_options(limits))["grpc.max_receive_message_length"]


def test_more_cells_than_can_be_run_are_refused_before_they_are_made() -> None:
    many = ", ".join(str(each) for each in range(1, 5_002))
    assert "have 10,002 cells; at most 10,000" in refusal(experiment(size="8B..16B", batch=f"[{many}]")).message
    lists = "brokers: [1,2,3,4,5,6,7,8,9,10], partitions: [64,65,66,67,68,69,70,71,72,73], producers: [1,2,3,4,5,6,7,8]"
    huge = experiment(f"{lists}, consumers: [1,2,3,4,5,6,7,8], acks: [0, 1, all]", size="8B..8MB", batch="[1, 2, 3]")
    assert "at most 10,000 are planned" in refusal(huge).message


def test_cells_are_counted_over_all_experiments() -> None:
    half = ", ".join(str(each) for each in range(1, 6_001))
    one = f"{{message_size: 8B, batch_size: [{half}], mode: split}}"
    error = refusal(text(experiments=f"experiments:\n  a: {one}\n  b: {one}"))
    assert "the experiments up to 'b' have 12,000 cells" in error.message


@pytest.mark.parametrize(
    ("profile", "piece", "message"),
    [
        ("{experiments: [], messages: 9, tries: 1}", "[]", "experiments is an empty list"),
        (
            "{experiments: [batch-siz], messages: 9, tries: 1}",
            "batch-siz]",
            "unknown name 'batch-siz'; did you mean 'batch-size'?",
        ),
        ("{experiments: [batch-size, batch-size], messages: 9, tries: 1}", "batch-size], m", "has 'batch-size' twice"),
        (
            "{experiments: [[batch-size]], messages: 9, tries: 1}",
            "[batch-size]]",
            "must be a list of names, not a list",
        ),
        (
            "{experiments: {batch-size: 1}, messages: 9, tries: 1}",
            "{batch-size: 1",
            "must be a list of names, not a mapping",
        ),
        ("{messages: 9, tries: 1}", "{messages: 9", "lacks the key 'experiments'"),
        ("{experiments: batch-size, messages: 99}", "{experiments: b", "lacks the key 'tries'"),
        ("{experiments: batch-size, tries: 1}", "p: {exp", "lacks its length: messages or duration_s"),
        (
            "{experiments: batch-size, tries: 1, messages: 99, duration_s: 1}",
            "duration_s",
            "both messages and duration_s",
        ),
        ("{experiments: batch-size, tries: 1, messages: 99, lead_s: 1}", "lead_s", "whole and have no lead_s"),
        ("{experiments: batch-size, tries: 0, messages: 99}", "0, mess", "tries cannot be '0'"),
        ("{experiments: batch-size, tries: 1, messages: 1e6}", "1e6", "messages cannot be '1e6'"),
        ("{experiments: batch-size, tries: 1, messages: 1:30}", "1:30", "messages cannot be '1:30'"),
        ("{experiments: batch-size, tries: 1, duration_s: .nan}", ".nan", "duration_s cannot be '.nan'"),
        ("{experiments: batch-size, tries: 1, duration_s: 0}", "0}", "duration_s cannot be '0'"),
        ("{experiments: batch-size, tries: 1, duration_s: 1s}", "1s", "duration_s cannot be '1s'"),
        ("{experiments: batch-size, tries: 1, duration_s: 60}", "60}", "2 windows of duration_s 60 do not fit"),
        ("{experiments: batch-size, tries: 1, duration_s: 59.9}", "59.9", "do not fit into timeout_s 120"),
        (
            "{experiments: batch-size, tries: 1, duration_s: 1, rounds: 60}",
            "1, rounds",
            "120 windows of duration_s 1 do not fit into timeout_s 120",
        ),
        ("{experiments: batch-size, tries: 1, duration_s: 3601}", "3601}", "a number from 0.01 to 3,600"),
        ("{experiments: batch-size, tries: 1, duration_s: 1, lead_s: 61}", "61}", "a number from 0 to 60"),
        ("{experiments: batch-size, tries: 1, duration_s: 1, lead_s: -1}", "-1}", "lead_s cannot be '-1'"),
        (
            "{experiments: batch-size, tries: 1, messages: 19}",
            "19}",
            "messages 19 is less than one request of batch_size 20",
        ),
        ("{experiments: batch-size, tries: 1, messages: 99, architectures: [dbss]}", "dbss", "did you mean 'dsbs'?"),
        (
            "{experiments: batch-size, tries: 1, messages: 99, architectures: []}",
            "[]",
            "architectures is an empty list",
        ),
        ("{experiments: batch-size, tries: 1, messages: 99, until: 1}", "until", "unknown key 'until'"),
        ("{experiments: batch-size, tries: 1, messages: 99, round: 2}", "round", "did you mean 'rounds'?"),
        ("{experiments: batch-size, tries: 1, messages: 99, rounds: 0}", "0}", "a whole number from 1 to 1,000"),
        ("{experiments: batch-size, tries: 1, messages: 99, budget_s: 0}", "0}", "a number from 1 to 86,400"),
        ("{experiments: batch-size, tries: 1, messages: 99, budget_s: 9m}", "9m}", "budget_s cannot be '9m'"),
        (
            "{experiments: batch-size, tries: 1, messages: 99, precision: 0.1}",
            "0.1",
            "precision cannot be '0.1': it must be a percentage from 0.1% to 100%, such as 10%",
        ),
        ("{experiments: batch-size, tries: 1, messages: 99, precision: 0%}", "0%", "a percentage from 0.1% to 100%"),
        ("{experiments: batch-size, tries: 1, messages: 99, precision: 101%}", "101%", "a percentage from 0.1%"),
        ("{experiments: batch-size, tries: 1, messages: 99, timeout_s: 1}", "1}", "timeout_s cannot be '1'"),
    ],
)
def test_a_profile_that_cannot_be_run_is_refused_where_it_is_wrong(profile: str, piece: str, message: str) -> None:
    source = text(profiles=f"profiles:\n  p: {profile}")
    error = refusal(source)
    assert message in error.message
    line = source.split("\n").index(f"  p: {profile}")
    assert (error.line, error.column) == (line + 1, source.split("\n")[line].index(piece) + 1)


# The pieces of a primary, each of which stands once in the file.
PRIMARY = [
    ("[]", "[]}", "primary is an empty list"),
    ("[dsbs, zookeeper]", "dsbs, zookeeper]", "primary is a list of pairs, such as [[dsbs, zookeeper]]"),
    ("[[dsbs]]", "[dsbs]", "primary is a list of pairs, such as [[dsbs, zookeeper]]"),
    ("[[dsbs, zookeeper, static]]", "[dsbs, zookeeper, static]", "primary is a list of pairs"),
    ("[[dsbs, dsbs]]", "dsbs]]", "primary has 'dsbs' twice"),
    ("[[dsbs, zookeper]]", "zookeper", "unknown name 'zookeper'; did you mean 'zookeeper'?"),
    ("[[dsbs, zookeeper], [dsbs, zookeeper]]", "[dsbs, zookeeper]]", "primary has the pair dsbs, zookeeper twice"),
    ("static", "static}}\ntrials", "primary is a list of pairs"),
    ("{dsbs: zookeeper}", "{dsbs", "primary must be a list"),
]


@pytest.mark.parametrize(("primary", "piece", "message"), PRIMARY)
def test_a_question_that_names_no_two_architectures_of_the_profile_is_refused_where_it_stands(
    primary: str, piece: str, message: str
) -> None:
    source = text(profiles=f"profiles: {{p: {{experiments: batch-size, tries: 1, messages: 99, primary: {primary}}}}}")
    error = refusal(source)
    assert message in error.message
    assert (error.line, error.column) == place_of(source, piece)


def test_a_question_about_an_architecture_that_the_profile_does_not_run_is_refused() -> None:
    on = "architectures: [dsbs, static], primary: [[dsbs, zookeeper]]"
    source = text(profiles=f"profiles: {{p: {{experiments: batch-size, tries: 1, messages: 99, {on}}}}}")
    assert "unknown name 'zookeeper'; allowed: dsbs, static" in refusal(source).message


LOADS = [
    (experiment(mode="load"), "load}}", "mode load needs the key 'load', such as load: [30%, 60%, 90%]"),
    (experiment("load: 60%"), "60%", "load is a share of the sustained rate, which mode: load alone has"),
    (experiment("load: 60%", mode="[split, load]"), "60%", "mode: load alone has"),
    (experiment("load: 60%, rate: 777", mode="load"), "777}", "mode load finds its rates itself: leave rate away"),
    (experiment("load: 0.6", mode="load"), "0.6", "load cannot be '0.6': it must be a percentage from 1% to 100%"),
    (experiment("load: 101%", mode="load"), "101%", "a percentage from 1% to 100%"),
    (experiment("load: [60%, 60.0%]", mode="load"), "60.0%", "load has the same value twice"),
]


@pytest.mark.parametrize(("source", "piece", "message"), LOADS)
def test_a_load_without_its_mode_and_the_mode_without_a_load_are_refused(source: str, piece: str, message: str) -> None:
    error = refusal(source)
    assert message in error.message
    assert (error.line, error.column) == place_of(source, piece)


def test_mode_load_is_measured_by_time() -> None:
    """A rate that is held is shown by a stretch of time, not by a number of messages."""
    source = experiment("load: 60%", mode="load")
    error = refusal(source)
    assert error.message == "profile 'steady': mode load needs duration_s, and 'one' has that mode"
    assert (error.line, error.column) == place_of(source, "1000000000")
    assert spec(source.replace("messages: 1000000000", "duration_s: 1"))


def test_the_name_of_the_link_to_the_newest_results_is_no_profile() -> None:
    assert "cannot be named 'latest'" in refusal(text(profiles=PROFILES.replace("paper", "latest"))).message


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ("{order: random}", "order cannot be 'random': it must be interleaved"),
        ("{seed: -1}", "seed cannot be '-1': it must be a whole number from 0"),
        ("{seed: 1.5}", "seed cannot be '1.5'"),
        ("{seed: 9999999999999999999}", "seed cannot be"),
        ("{warmup: 101}", "warmup cannot be '101': it must be a whole number from 0 to 100"),
        ("{timeout_s: 2min}", "timeout_s cannot be '2min': it must be a number from 5 to 86,400"),
        ("{seeds: 1}", "unknown key 'seeds' in trials; did you mean 'seed'?"),
    ],
)
def test_settings_of_trials_are_refused_with_what_is_allowed(trials: str, message: str) -> None:
    assert message in refusal(text(trials=f"trials: {trials}")).message


def test_an_experiment_that_no_profile_names_is_checked_all_the_same() -> None:
    source = text(
        experiments=f"{EXPERIMENTS}\n  unused: {{message_size: 8B, batch_size: 1, mode: split, consumers: 9}}"
    )
    assert "experiment 'unused': 9 consumers on 3 partitions" in refusal(source).message
