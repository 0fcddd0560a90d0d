from __future__ import annotations

import pytest

from tests.unit.workloads.spec.files import experiment, spec, text
from workloads.errors import PlanError
from workloads.spec.estimate import Estimate, TrialEstimate, check_disk, estimate, estimate_trial
from workloads.spec.plan import Plan, resolve


def plan_of(extra: str = "", *, size: str = "32B", batch: str = "20", mode: str = "split", length: str = "") -> Plan:
    source = experiment(extra, size=size, batch=batch, mode=mode)
    return resolve(spec(source.replace("messages: 1000000000", length or "messages: 30000")), "steady")


def expected_on(plan: Plan, architecture: str) -> TrialEstimate:
    trial = next(trial for trial in plan.trials if trial.architecture.name == architecture)
    return estimate_trial(trial, plan.effort)


def test_cells_and_measured_trials_are_counted() -> None:
    expected = estimate(resolve(spec(text()), "paper"))
    assert (expected.cells, expected.trials) == (6, 6 * 4 * 4)


def test_a_trial_of_counted_messages_sends_just_those() -> None:
    plan = plan_of()
    assert expected_on(plan, "static").messages == 30_000
    assert estimate(plan).messages == 30_000 * len(plan.trials)
    rounds = plan_of(length="messages: 30000, rounds: 3")
    assert estimate(rounds).messages == 3 * estimate(plan).messages


def test_a_window_of_some_duration_lasts_as_long_and_its_lead() -> None:
    found = expected_on(plan_of(length="duration_s: 2, lead_s: 0.5"), "static")
    assert found.window_s == pytest.approx(2.5)


def test_a_split_trial_has_two_windows_in_each_round() -> None:
    once, thrice = (expected_on(plan_of(length=f"duration_s: 2, rounds: {rounds}"), "static") for rounds in (1, 3))
    assert once.seconds > 2 * 2
    assert thrice.seconds - once.seconds == pytest.approx(2 / 3 * thrice.seconds, rel=0.1)
    assert thrice.messages == pytest.approx(3 * once.messages, rel=0.01)


def test_a_budget_is_expected_to_be_spent() -> None:
    small, large = (plan_of(length=f"messages: 30000, budget_s: {budget}") for budget in (1, 3600))
    plain = estimate(plan_of())
    assert estimate(small) == plain
    assert 3600 < estimate(large).seconds < 3700
    assert estimate(large).trials == plain.trials


def test_disk_at_the_peak_is_the_largest_topic_of_all_architectures_and_their_replicas_and_the_raw_records() -> None:
    one, three = (plan_of(f"replication_factor: {copies}", size="[8B, 1KB]", batch="50") for copies in (1, 3))
    payload = 30_000 * 1024 * len(one.architectures)
    assert payload < estimate(one).bytes_on_disk_peak - estimate(one).bytes_results < 1.2 * payload
    assert 3 * payload < estimate(three).bytes_on_disk_peak - estimate(three).bytes_results < 3.6 * payload


def test_more_tries_take_more_time_and_records_but_no_more_topics() -> None:
    few = estimate(resolve(spec(text()), "paper"))
    many = estimate(resolve(spec(text().replace("tries: 4", "tries: 8")), "paper"))
    assert many.bytes_results > few.bytes_results
    assert many.seconds > few.seconds
    assert many.bytes_on_disk_peak - many.bytes_results == few.bytes_on_disk_peak - few.bytes_results


def test_small_batches_write_more_rows_and_take_longer() -> None:
    one, twenty = (expected_on(plan_of(batch=batch), "static") for batch in ("1", "20"))
    assert one.bytes_results > twenty.bytes_results
    assert one.window_s > twenty.window_s


def test_both_windows_of_a_split_trial_count() -> None:
    split, streaming = (expected_on(plan_of(mode=mode), "static") for mode in ("split", "streaming"))
    assert split.seconds > streaming.seconds


def test_asking_zookeeper_costs_time() -> None:
    plan = plan_of("driver: kafka")
    seconds = [expected_on(plan, name).seconds for name in ("zookeeper", "zookeeper-watch", "static")]
    assert seconds[0] > seconds[1] == seconds[2]


def test_requests_that_a_client_library_hides_are_slices_of_time() -> None:
    hidden, seen = (expected_on(plan_of(f"driver: {d}", batch="1"), "static") for d in ("kafka", "grpc"))
    assert hidden.bytes_results < seen.bytes_results


def test_an_estimate_knows_its_longest_trial() -> None:
    plan = plan_of(batch="[1, 50]")
    expected = estimate(plan)
    assert expected.longest_trial_s == max(estimate_trial(trial, plan.effort).seconds for trial in plan.trials)


def test_a_plan_that_the_free_disk_cannot_hold_is_refused_with_both_numbers() -> None:
    expected = Estimate(1, 1, 1, bytes_on_disk_peak=2_000_000, bytes_results=1, seconds=1, longest_trial_s=1)
    check_disk(expected, free_bytes=2_000_000)
    with pytest.raises(PlanError, match="about 2,000,000 bytes of disk at its peak, and 1,999,999 are free") as caught:
        check_disk(expected, free_bytes=1_999_999)
    assert caught.value.exit_code == 2
