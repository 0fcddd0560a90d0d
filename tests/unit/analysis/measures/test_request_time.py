"""The model of a request's time on rows with known answers: no Spark is needed to divide."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from analysis.findings import Findings
from analysis.measures import request_time

CELL = {"others": "", "message_size": 32, "batch_size": 10, "mode": "split", "cell": "c"}
NAMES = ("zookeeper", "dsbs", "static")
EMPTY = Findings()


def row(name: str, **more: Any) -> dict[str, Any]:
    return (
        CELL
        | {
            "architecture": name,
            "architecture_rank": NAMES.index(name),
            "window": "production",
            "role": "production",
        }
        | more
    )


def cell(name: str, request_us: float, **more: Any) -> dict[str, Any]:
    return row(name, metric="rps", geometric=10 * 1e6 / request_us, **more)


def waited(name: str, per_message_us: float, operations: float, operation: str = "lookup") -> dict[str, Any]:
    return row(name, operation=operation, operations=operations, bytes=0, wait_ms=per_message_us)


def found(*cells: dict[str, Any], **more: Any) -> Findings:
    trials = tuple({**one, "kind": "measured", "system": "brokerlab"} for one in cells)
    return dataclasses.replace(EMPTY, cells=cells, trials=trials, **more)


def split_of(whole: Findings, name: str) -> Any:
    (one,) = (one for one in request_time.splits(whole) if one["architecture"] == name)
    return one


THREE = found(
    cell("zookeeper", 100), cell("dsbs", 22), cell("static", 20),
    coordination=(waited("zookeeper", 40, 100), waited("dsbs", 0.1, 0)),
)  # fmt: skip


def test_data_path_is_the_time_of_static_and_coordination_what_is_added_to_it() -> None:
    one = split_of(THREE, "zookeeper")
    assert (one["request_us"], one["data_us"], one["coordination_us"]) == pytest.approx((100, 20, 80))
    assert (one["waited_us"], one["waiting_at_once"]) == pytest.approx((400, 4))
    assert split_of(THREE, "static")["coordination_us"] == 0


@pytest.mark.parametrize(
    ("factor", "zookeeper_us", "dsbs_us"), [(0.1, 28, 20.2), (0.5, 60, 21), (1, 100, 22), (5, 420, 30)]
)
def test_ratio_at_another_price_is_of_data_path_and_so_many_times_coordination(
    factor: float, zookeeper_us: float, dsbs_us: float
) -> None:
    assert split_of(THREE, "dsbs")[request_time.factor_name(factor)] == pytest.approx(zookeeper_us / dsbs_us)
    assert split_of(THREE, "zookeeper")[request_time.factor_name(factor)] == 1


def test_architecture_faster_than_static_has_no_negative_coordination() -> None:
    one = split_of(found(cell("dsbs", 19), cell("static", 20)), "dsbs")
    assert (one["data_us"], one["coordination_us"]) == pytest.approx((19, 0))


def test_without_static_a_time_is_not_split() -> None:
    whole = found(cell("zookeeper", 100), cell("dsbs", 22), coordination=(waited("zookeeper", 40, 100),))
    assert request_time.splits(whole) == ()


def test_streaming_counts_a_request_when_it_is_consumed() -> None:
    rows = [
        {**cell("dsbs", us), "mode": "streaming", "role": role}
        for us, role in ((50, "production"), (80, "consumption"))
    ]
    control = [{**each, "architecture": "static", "architecture_rank": 2} for each in rows]
    one = split_of(found(*rows, *control), "dsbs")
    assert (one["window"], one["request_us"]) == ("both", pytest.approx(80))


def test_waits_of_streaming_are_those_of_a_consumed_message_as_its_rate_is() -> None:
    """A hundred produced for each consumed: a request that is consumed every 1,000 us waits 80,000 us, 80 at once."""
    rows = [
        {**cell(name, us), "mode": "streaming", "role": role}
        for name in ("zookeeper", "static")
        for us, role in ((10, "production"), (1_000, "consumption"))
    ]
    costs = [
        {**waited("zookeeper", us, 100), "mode": "streaming", "window": "both", "role": role}
        for us, role in ((80, "production"), (8_000, "consumption"))
    ]
    one = split_of(found(*rows, coordination=tuple(costs)), "zookeeper")
    assert (one["waited_us"], one["waiting_at_once"]) == pytest.approx((80_000, 80))


def test_a_rate_at_a_fixed_load_is_no_time_of_a_request() -> None:
    rows = [{**cell(name, 100), "mode": "load"} for name in ("zookeeper", "static")]
    assert request_time.splits(found(*rows)) == ()


def used(name: str, process: str, cpu: float, client: float | None) -> dict[str, Any]:
    return row(name, process=process, cpu_us_per_message=cpu, coordination_cpu_us_per_message=client, cores_busiest=0.1)


def test_coordination_request_is_client_server_and_the_rest() -> None:
    whole = dataclasses.replace(
        THREE, resources=(used("zookeeper", "coordinator", 6, None), used("zookeeper", "broker", 30, 12))
    )
    (one,) = request_time.requests(whole)  # one for each request of ten messages
    assert (one["operations"], one["wait_us"]) == pytest.approx((100, 400))
    assert (one["client_us"], one["server_us"], one["rest_us"]) == pytest.approx((120, 60, 220))


def test_client_that_does_not_count_is_not_known_rather_than_nothing() -> None:
    resources = (used("zookeeper", "coordinator", 6, None), used("zookeeper", "broker", 30, None))
    whole = dataclasses.replace(THREE, resources=resources)
    (one,) = request_time.requests(whole)
    assert (one["client_us"], one["rest_us"]) == (None, pytest.approx(340))


def test_coordinator_that_is_seldom_asked_is_not_divided_by_so_little() -> None:
    whole = found(
        cell("zookeeper", 100), coordination=(waited("zookeeper", 1, 0.1),),
        resources=(used("zookeeper", "coordinator", 6, None),),
    )  # fmt: skip
    assert request_time.requests(whole) == ()


def test_one_architecture_alone_has_no_ratio_to_another() -> None:
    assert request_time.pair_of(found(cell("dsbs", 22))) is None
    assert request_time.pair_of(found(cell("dsbs", 22), cell("static", 20))) is None


def test_a_wait_that_brokers_do_not_count_is_empty_and_one_that_did_not_happen_zero() -> None:
    whole = found(cell("zookeeper", 100), cell("dsbs", 22), cell("static", 20), coordination=THREE.coordination)
    assert (split_of(whole, "static")["waited_us"], split_of(whole, "static")["waiting_at_once"]) == (None, None)
    counted = dataclasses.replace(whole, batches=(row("static", broker=10.0),))
    assert (split_of(counted, "static")["waited_us"], split_of(counted, "static")["waiting_at_once"]) == (0, 0)
    unknown = {**waited("zookeeper", 40, 100), "wait_ms": None}
    none = dataclasses.replace(THREE, coordination=(unknown,), resources=(used("zookeeper", "coordinator", 6, None),))
    assert split_of(none, "zookeeper")["waited_us"] is None
    assert request_time.requests(none) == ()


def test_processor_time_that_is_not_known_makes_no_coordination_request() -> None:
    unknown = {**used("zookeeper", "coordinator", 6, None), "cpu_us_per_message": None}
    assert request_time.requests(dataclasses.replace(THREE, resources=(unknown,))) == ()


def test_what_another_system_takes_beyond_static_is_not_called_coordination() -> None:
    trials = tuple({**one, "system": "kafka" if one["architecture"] == "dsbs" else "brokerlab"} for one in THREE.trials)
    whole = dataclasses.replace(THREE, trials=trials)
    assert {one["architecture"] for one in request_time.splits(whole)} == {"zookeeper", "static"}
