"""Windows of real clusters take turns: side by side, in the order of a square, each one the measure of its own time."""

from __future__ import annotations

import os
import signal
from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from tests.integration.processes.running import command_of, descendants
from tests.integration.runs.short_runs import Hooks, at_work, rows, run_here
from tests.unit.workloads.run.plans import plan
from workloads.measure.machine import Load
from workloads.results import LATENCY, REQUESTS, ResultsFolder, file_name
from workloads.run import pace
from workloads.run.pace import Pace
from workloads.run.rounds import first_turn, in_turn
from workloads.run.runner import Summary
from workloads.spec.plan import Plan
from workloads.trial.record import TrialRecord
from workloads.trial.trial import TrialRun

THREE: Final = "architectures: {dsbs: {coordinator: dsbs}, static: {coordinator: static}, again: {coordinator: static}}"
TWO: Final = "architectures: {dsbs: {coordinator: dsbs}, static: {coordinator: static}}"
ROUNDS: Final = 6
TIMED = plan(
    architectures=THREE,
    experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming]}}",
    profile=f"{{experiments: one, duration_s: 0.05, lead_s: 0.02, tries: 1, rounds: {ROUNDS}}}",
)
COUNTED = plan(
    architectures=TWO,
    experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming]}}",
    profile="{experiments: one, messages: 200, tries: 1, rounds: 3}",
)
ONE_ROUND = plan(
    architectures=TWO,
    experiments="experiments: {one: {message_size: 32B, batch_size: [10, 20], mode: split}}",
    profile="{experiments: one, messages: 200, tries: 1, rounds: 2}",
)
Windows = list[tuple[str, dict[str, Any]]]  # architecture and window


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every window's machine counts as quiet, so each is measured once."""
    folder = tmp_path_factory.mktemp("timed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Load, "disturbed", property(lambda _: False))
        assert run_here(folder, TIMED) == Summary(valid=6, invalid=0, failed=0)
    return folder


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counted")
    assert run_here(folder, COUNTED) == Summary(valid=4, invalid=0, failed=0)
    return folder


def windows_of(folder: Path, cell: str) -> Windows:
    """All windows of a cell, in the order of their time."""
    every = [
        (row["architecture"], window)
        for row in rows(folder).values()
        if row["cell"] == cell
        for window in row["windows"]
    ]
    return sorted(every, key=lambda each: int(each[1]["opened_ns"]))


@pytest.mark.parametrize("cell", TIMED.cells, ids=lambda cell: cell.mode)
def test_a_round_takes_the_cell_through_all_architectures_in_the_order_of_the_square(timed: Path, cell: Any) -> None:
    names = [each.name for each in TIMED.architectures]
    turn = first_turn(TIMED.seed, 1, cell.id)
    rounds = [
        (key, [name for name, _ in own])
        for key, own in groupby(windows_of(timed, cell.id), lambda each: (each[1]["window"], each[1]["round"]))
    ]
    kinds = ["production", "consumption"] if cell.mode == "split" else ["both"]
    assert rounds == [((kind, n), in_turn(names, turn + n - 1)) for kind in kinds for n in range(1, ROUNDS + 1)]


@pytest.mark.parametrize("cell", TIMED.cells, ids=lambda cell: cell.mode)
def test_no_two_windows_overlap_and_each_knows_its_place(timed: Path, cell: Any) -> None:
    found = windows_of(timed, cell.id)
    for (_, one), (_, other) in pairwise(found):
        assert one["closed_ns"] < other["opened_ns"]
    places = [window["place"] for _, window in found]
    assert places == [1, 2, 3] * (len(found) // 3)
    for name in ("dsbs", "static", "again"):
        numbers = [window["number"] for each, window in found if each == name]
        assert numbers == sorted(set(numbers))


def test_a_window_of_time_is_open_for_as_long_as_asked_in_the_middle_of_its_clients_work(timed: Path) -> None:
    for trial, row in rows(timed).items():
        table = pq.read_table(timed / REQUESTS / file_name(trial)).to_pylist()
        for window in row["windows"]:
            assert window["closed_ns"] - window["opened_ns"] >= 0.05e9
            assert window["wall_s"] * 1e9 >= window["closed_ns"] - window["opened_ns"]
            own = [one for one in table if one["window_number"] == window["number"] and one["messages"]]
            roles = {"production": {"producer"}, "consumption": {"consumer"}, "both": {"producer", "consumer"}}
            assert {one["role"] for one in own} == roles[window["window"]]
            assert min(one["sent_ns"] for one in own) < window["opened_ns"]
            assert max(one["done_ns"] for one in own) > window["opened_ns"]


def test_what_is_stored_for_consumers_beforehand_is_in_no_window(timed: Path) -> None:
    split = next(row for row in rows(timed).values() if row["mode"] == "split")
    table = pq.read_table(timed / REQUESTS / file_name(split["trial_id"])).to_pylist()
    numbers = {one["window_number"] for one in table if one["role"] == "consumer"}
    assert 0 not in numbers
    assert {window["number"] for window in split["windows"] if window["window"] == "consumption"} <= numbers
    assert sum(one["messages"] for one in table if one["role"] == "producer") == split["sent"] == split["stored"]
    assert split["consumed"] < split["stored"], "they never came to the end"


def test_costs_stand_under_the_number_of_their_window(timed: Path) -> None:
    for row in rows(timed).values():
        numbers = {window["number"]: window["window"] for window in row["windows"]}
        for part in ("resources", "broker_requests"):
            assert {(one["number"], one["window"]) for one in row[part]} == set(numbers.items())
        for one in row["resources"]:
            (window,) = [each for each in row["windows"] if each["number"] == one["number"]]
            assert one["wall_s"] == window["wall_s"]


def test_windows_of_a_number_of_messages_send_that_many_each_and_are_read_in_equal_parts(counted: Path) -> None:
    for trial, row in rows(counted).items():
        table = pq.read_table(counted / REQUESTS / file_name(trial)).to_pylist()
        for window in row["windows"]:
            assert (window["opened_ns"], window["closed_ns"], window["attempt"]) == (None, None, 1)
            done: Counter[str] = Counter()
            for one in table:
                if one["window_number"] == window["number"]:
                    done[one["role"]] += one["messages"]
            if window["window"] != "consumption":
                assert done["producer"] == 200
            if window["window"] != "production":
                assert abs(done["consumer"] - 200) <= row["partitions"], "a part is rounded up in each partition"
        assert row["sent"] == row["consumed"] == row["stored"] == 600


def test_a_broker_that_is_killed_fails_its_own_trial_alone_and_the_next_cell_has_a_new_cluster(tmp_path: Path) -> None:
    before = descendants(os.getpid())
    first, second = (each.cell for each in ONE_ROUND.blocks[0].fleets[0].visits)
    left = ["static"]

    def kill(record: TrialRecord) -> None:
        if record.trial.cell == first and record.trial.architecture.name == "static" and left:
            left.pop()
            os.kill(broker_of("block-1-static", before), signal.SIGKILL)

    with at_work(kill):
        assert run_here(tmp_path, ONE_ROUND) == Summary(valid=3, invalid=0, failed=1)
    found = rows(tmp_path)
    assert {trial: row["verdict"] for trial, row in found.items()} == {
        f"{first.id}/static/1": "failed", f"{first.id}/dsbs/1": "valid",
        f"{second.id}/static/1": "valid", f"{second.id}/dsbs/1": "valid",
    }  # fmt: skip
    assert found[f"{first.id}/static/1"]["reason"].startswith("broker-2 was ended by SIGKILL")
    assert len(found[f"{first.id}/dsbs/1"]["windows"]) == 4, "its rounds go on"
    assert sorted(path.name.rpartition("static")[2].count("-") for path in tmp_path.glob("logs/*static*")) == [1, 2]
    assert len(list(tmp_path.glob("logs/*dsbs*"))) == 1

    again = Hooks()
    assert run_here(tmp_path, ONE_ROUND, again) == Summary(valid=4, invalid=0, failed=0)
    assert {trial for trial, _ in again.ended} == {f"{first.id}/static/1", f"{first.id}/dsbs/1"}, "as a whole"


def broker_of(label: str, before: set[int]) -> int:
    found = [pid for pid in descendants(os.getpid()) - before if "broker-2.json" in command_of(pid)]
    (one,) = [pid for pid in found if label in command_of(pid)]
    return one


def test_a_cell_that_an_interruption_left_unfinished_is_measured_again_as_a_whole(tmp_path: Path) -> None:
    """A visit is written down trial by trial; here the run was killed between the two."""
    assert run_here(tmp_path, ONE_ROUND) == Summary(valid=4, invalid=0, failed=0)
    _, second = ONE_ROUND.blocks[0].fleets[0].visits
    lost = second.trials[1]
    before = {path: path.read_bytes() for path in (tmp_path / "trials").iterdir()}
    (tmp_path / "trials" / file_name(lost.id)).unlink()
    hooks = Hooks()
    assert run_here(tmp_path, ONE_ROUND, hooks) == Summary(valid=4, invalid=0, failed=0)
    assert [trial for trial, _ in hooks.ended] == [trial.id for trial in second.trials]
    changed = {path.name for path, content in before.items() if path.read_bytes() != content}
    assert changed == {file_name(trial.id) for trial in second.trials}


# --- windows that are measured again --------------------------------------------------------------------------

SHORT = "{experiments: one, duration_s: 0.05, lead_s: 0.02, tries: 1, rounds: 2}"
SPLIT = plan(experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: split}}", profile=SHORT)


def test_a_disturbed_window_is_measured_again_and_both_are_kept_and_less_often_where_that_does_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Load, "disturbed", property(lambda _: True))
    monkeypatch.setattr(Pace, "lengthens", lambda *_: False)
    assert run_here(tmp_path, SPLIT) == Summary(valid=1, invalid=0, failed=0)
    (row,) = rows(tmp_path).values()
    found = [(window["window"], window["round"], window["attempt"]) for window in row["windows"]]
    again = [("production", 1), ("consumption", 2)]  # the two in between are left as they are
    windows = [(w, r) for w in ("production", "consumption") for r in (1, 2)]
    assert found == [(*each, a) for each in windows for a in ((1, 2) if each in again else (1,))]
    assert len({window["number"] for window in row["windows"]}) == len(found)


def test_windows_that_are_too_short_for_the_slowest_are_longer_from_then_on_and_the_round_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as is allowed here, where nothing would be long enough; on all architectures alike."""
    monkeypatch.setattr(pace, "MESSAGES_MIN", 10**9)
    monkeypatch.setattr(Load, "disturbed", property(lambda _: False))
    of = plan(
        architectures=TWO,
        experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: streaming}}",
        profile=SHORT,
    )
    assert run_here(tmp_path, of) == Summary(valid=2, invalid=0, failed=0)
    for row in rows(tmp_path).values():
        assert [(each["number"], each["round"], each["attempt"]) for each in row["windows"]] == [(2, 1, 1), (3, 2, 1)]
        assert all(each["closed_ns"] - each["opened_ns"] >= pace.LONGER_MAX * 0.05e9 for each in row["windows"])
        assert {one["number"] for one in row["resources"]} == {2, 3}, "what was dropped costs nothing"
        assert row["sent"] == row["stored"], "and is audited all the same"


def test_a_window_whose_consumers_ran_dry_is_filled_and_measured_again_and_leaves_no_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "lengthens", lambda *_: False)
    real, fills = TrialRun.fill, []

    async def little(run: TrialRun, messages: int) -> None:
        fills.append(messages)
        await real(run, 10 if len(fills) == 1 else messages)

    async def empties(run: TrialRun) -> None:
        """What production left is read before."""
        await run.catch_up()
        run.record.consumed = run.record.acknowledged

    join = TrialRun.join

    async def joins_late(run: TrialRun) -> None:
        await join(run)
        await empties(run)

    monkeypatch.setattr(TrialRun, "fill", little)
    monkeypatch.setattr(TrialRun, "join", joins_late)
    monkeypatch.setattr(Load, "disturbed", property(lambda _: False))
    assert run_here(tmp_path, SPLIT) == Summary(valid=1, invalid=0, failed=0)
    (row,) = rows(tmp_path).values()
    assert [(w["window"], w["round"], w["attempt"]) for w in row["windows"]] == [
        ("production", 1, 1), ("production", 2, 1), ("consumption", 1, 1), ("consumption", 2, 1),
    ]  # fmt: skip
    numbers = [window["number"] for window in row["windows"]]
    assert numbers[:2] == [1, 2]
    assert numbers[2] > 3, "3 ran dry"
    assert len(fills) >= 2
    assert {one["number"] for one in row["resources"]} == set(numbers)


# --- a load ---------------------------------------------------------------------------------------------------


def test_every_architecture_is_offered_the_same_share_of_what_all_sustain(tmp_path: Path) -> None:
    loads: Plan = plan(
        architectures=TWO,
        experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: load, load: [20%, 40%]}}",
        profile="{experiments: one, duration_s: 0.2, tries: 1}",
    )
    assert run_here(tmp_path, loads) == Summary(valid=4, invalid=0, failed=0)
    manifest = ResultsFolder(tmp_path).read_manifest()
    assert manifest is not None
    ((_, sustained),) = manifest["sustained"].items()
    found = rows(tmp_path)
    for cell in loads.cells:
        assert cell.load is not None
        for name in ("dsbs", "static"):
            row = found[f"{cell.id}/{name}/1"]
            assert (row["load"], row["rate"]) == (cell.load, pytest.approx(cell.load * sustained))
            assert {window["window"] for window in row["windows"]} == {"both"}
            latency = pq.read_table(tmp_path / LATENCY / file_name(row["trial_id"])).to_pylist()
            assert {one["window_number"] for one in latency} <= {window["number"] for window in row["windows"]}
            assert sum(sum(one["latency_count"]) for one in latency) > 0


def test_where_one_dies_before_it_is_known_what_all_sustain_nobody_is_measured_at_another_rate(tmp_path: Path) -> None:
    before = descendants(os.getpid())
    left = ["static"]

    def kill(record: TrialRecord) -> None:
        if record.trial.id.startswith("sustained/") and record.trial.architecture.name == "static" and left:
            left.pop()
            os.kill(broker_of("block-1-static", before), signal.SIGKILL)

    loads = plan(
        architectures=TWO,
        experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: load, load: 20%}}",
        profile="{experiments: one, duration_s: 0.1, tries: 1}",
    )
    with at_work(kill):
        assert run_here(tmp_path, loads) == Summary(valid=0, invalid=0, failed=2)
    found = {row["architecture"]: row for row in rows(tmp_path).values()}
    assert found["static"]["reason"].startswith("broker-2 was ended by SIGKILL")
    assert found["dsbs"]["reason"] == "what all architectures sustain is not known"
    assert {row["rate"] for row in found.values()} == {None}
    assert run_here(tmp_path, loads) == Summary(valid=2, invalid=0, failed=0)


def test_what_all_sustain_is_found_once_for_a_cell_and_all_its_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = TrialRun.warm, []

    async def warm(run: TrialRun, seconds: float) -> tuple[float, float]:
        asked.append(run.record.trial.id)
        await real(run, 0.1)
        return (5_000.0, 2_000.0)

    monkeypatch.setattr(TrialRun, "warm", warm)
    loads = plan(
        experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: load, load: [20%, 40%]}}",
        profile="{experiments: one, duration_s: 0.05, lead_s: 0.02, tries: 2}",
    )
    assert run_here(tmp_path, loads) == Summary(valid=4, invalid=0, failed=0)
    assert [trial.split("/")[0] for trial in asked] == ["sustained"]
    assert {(row["load"], row["rate"]) for row in rows(tmp_path).values()} == {(0.2, 400.0), (0.4, 800.0)}
