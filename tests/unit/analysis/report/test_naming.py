from __future__ import annotations

from analysis.report.naming import names
from tests.made_report import MANIFEST, NAMES


def test_a_name_says_where_metadata_is_and_what_a_commit_promises() -> None:
    called = names(NAMES, MANIFEST)
    assert called["zookeeper"].label == "ZooKeeper asked each time"
    assert called["zookeeper-watch"].commit.endswith("next write to ZooKeeper, every 1,000 ms")
    assert called["dsbs"].metadata == "brokers hold it in memory and tell each other of changes"
    assert called["static"].label == "no coordination"


def test_one_architecture_under_two_names_is_said_to_be_one() -> None:
    called = names(NAMES, MANIFEST)
    assert called["static-again"].label == "no coordination, again"
    assert called["static-again"].metadata == "the same as static, under another name"


def test_labels_that_would_be_the_same_differ_by_what_a_commit_promises() -> None:
    rows = [{"name": f"zookeeper-{kept}", "row": "zookeeper", "metadata": "watch", "offsets": kept}
            for kept in ("memory", "zookeeper_each")]  # fmt: skip
    called = names([row["name"] for row in rows], {"architectures": rows})
    assert [one.label for one in called.values()] == [
        "ZooKeeper watched, a commit stays in memory",
        "ZooKeeper watched, a commit is a write to ZooKeeper",
    ]


def test_settings_that_the_file_leaves_out_are_the_rows_own() -> None:
    called = names(["zookeeper", "static"], {"architectures": [{"name": n, "row": n} for n in ("zookeeper", "static")]})
    assert called["zookeeper"].label == "ZooKeeper asked"
    assert called["static"].commit == "is in the broker's journal"


def test_an_older_run_asked_once_for_each_request_and_called_it_otherwise() -> None:
    rows = [{"name": "zookeeper", "row": "zookeeper", "metadata": "lookup", "offsets": "every_commit"}]
    called = names(["zookeeper"], {"schema_version": 2, "architectures": rows})
    assert called["zookeeper"].label == "ZooKeeper asked each time"
    assert called["zookeeper"].commit == "is a write to ZooKeeper"


def test_added_delay_is_named() -> None:
    rows = [{"name": "slow", "row": "dsbs", "delay_us": 200}]
    assert names(["slow"], {"architectures": rows})["slow"].label == "DSBS + 200 µs"
    assert "200 µs are added" in names(["slow"], {"architectures": rows})["slow"].metadata


def test_another_system_and_an_unknown_one_have_names_too() -> None:
    rows = [{"name": "kafka-kraft", "row": "kafka-kraft"}, {"name": "mine", "row": "mine.module:Class"}]
    called = names(["kafka-kraft", "mine", "lost"], {"architectures": rows})
    assert called["kafka-kraft"].label == "Apache Kafka, KRaft"
    assert [called[name].label for name in ("mine", "lost")] == ["mine", "lost"]
    assert names(["dsbs"], None)["dsbs"].metadata == ""
