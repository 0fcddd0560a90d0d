"""Every number of the tables, computed once more from the raw records of a real run, with pandas and SciPy and none of
the analysis's own code.

The report drops a leading part of a window that is unlike its second half. Which part is its own affair; here the rate
must be that of whole request rows from some row's end to the last that ended in the window.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

from tests.integration.runs.short_runs import run_here
from tests.unit.workloads.run.plans import plan

pytestmark = pytest.mark.java

RUN = plan(
    architectures="""architectures:
  static: {coordinator: static, offsets: memory}
  static-again: {coordinator: static, offsets: memory}
  static-journal: {coordinator: static, offsets: journal}""",
    experiments="""experiments:
  one: {message_size: [8B, 32B], batch_size: 20, mode: [split, streaming], driver: kafka}""",
    profile="{experiments: one, duration_s: 0.1, lead_s: 0.05, tries: 3, rounds: 2, "
    "primary: [[static-journal, static]]}",
)
CLIENTS = {"production": "producer", "consumption": "consumer"}
CELL = ["message_size", "batch_size", "mode", "role"]
EXACT = 1e-9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run with its report."""
    made = tmp_path_factory.mktemp("recomputed") / "run"
    assert run_here(made, RUN).valid == len(RUN.sure_trials)
    subprocess.run([sys.executable, "-m", "workloads", "analyze", str(made)], check=True, capture_output=True)
    return made


def table(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / "tables" / f"{name}.csv")


@pytest.fixture(scope="module")
def trials(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted((folder / "trials").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="module")
def requests(folder: Path) -> pd.DataFrame:
    rows = pd.concat([pd.read_parquet(path) for path in sorted((folder / "requests").glob("*.parquet"))])
    return rows[(rows.status == "ok") & (rows.messages > 0)]


def used(trial: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of several attempts, the least disturbed."""
    taken: set[tuple[int, str]] = set()
    for window in sorted(trial["windows"], key=lambda each: (each["foreign_cores"], each["number"])):
        if (key := (window["round"], window["window"])) not in taken:
            taken.add(key)
            yield window


@pytest.fixture(scope="module")
def windows(folder: Path) -> pd.DataFrame:
    """The report's windows that are used, whose numbers the first test holds to the records."""
    found = table(folder, "windows")
    return found[~found.marks.fillna("").str.contains("not used")]


def test_the_rate_of_a_window_is_that_of_its_request_rows(
    windows: pd.DataFrame, trials: list[dict[str, Any]], requests: pd.DataFrame
) -> None:
    told = windows.set_index(["architecture", *CELL, "try", "round"])
    assert told.index.is_unique
    checked = 0
    for trial in trials:
        for window in used(trial):
            for role, client in CLIENTS.items():
                if window["window"] not in (role, "both"):
                    continue
                named = (trial["architecture"], *(trial[name] for name in CELL[:3]), role)
                row = told.loc[(*named, trial["try"], window["round"])]
                own = requests[(requests.trial_id == trial["trial_id"]) & (requests.role == client)]
                own = own[own.window_number == window["number"]]
                end = own.done_ns[own.done_ns <= window["closed_ns"]].max()
                start = end - round(row.window_s * 1e9)
                before = own.done_ns[own.done_ns <= window["opened_ns"]]
                first = before.max() if len(before) else window["opened_ns"]
                if not row.messages:  # the machine was so busy that nothing ended in the window
                    assert own[(own.done_ns > first) & (own.done_ns <= window["closed_ns"])].empty
                    checked += 1
                    continue
                assert start == first or (start > first and (own.done_ns == start).any())
                inside = own[(own.done_ns > start) & (own.done_ns <= end)]
                assert row.messages == inside.messages.sum()
                if not math.isnan(row.rps):
                    assert row.rps == pytest.approx(row.messages / row.window_s, rel=EXACT)
                assert row.foreign == pytest.approx(window["foreign_cores"] / window["cores"], rel=EXACT)
                checked += 1
    assert checked == len(windows)


def logs(windows: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """Log-ratios of windows of one round, in their blocks' means."""
    rates = windows.dropna(subset=["rps"]).pivot_table(
        index=[*CELL, "try", "round"], columns="architecture", values="rps"
    )
    both: pd.Series[float] = (rates[one] / rates[other]).dropna().map(math.log)
    means: pd.Series[float] = both.groupby([*CELL, "try"]).mean()
    return means.reset_index(name="log")


def test_a_cell_is_the_mean_of_its_blocks_with_students_interval(folder: Path, windows: pd.DataFrame) -> None:
    blocks = windows.dropna(subset=["rps"]).groupby(["architecture", *CELL, "try"]).rps.mean()
    for key, own in blocks.groupby(level=list(range(5))):
        told = table(folder, "cells").set_index(["architecture", *CELL]).loc[key]
        half = stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / math.sqrt(len(own))
        expected = {"n": len(own), "mean": own.mean(), "sd": own.std(ddof=1)}
        expected |= {"low": own.mean() - half, "high": own.mean() + half}
        assert {name: told[name] for name in expected} == pytest.approx(expected, rel=1e-6, nan_ok=True)


def test_a_ratio_is_that_of_windows_of_one_round_over_blocks(folder: Path, windows: pd.DataFrame) -> None:
    checked = 0
    for told in table(folder, "comparison").itertuples():
        found = logs(windows, str(told.architecture), str(told.against))
        own = found[(found[CELL] == [told.message_size, told.batch_size, told.mode, told.role]).all(axis=1)].log
        if pd.isna(told.ratio):  # too few messages, on a machine that is busy
            continue
        assert told.n == len(own)
        assert told.ratio == pytest.approx(math.exp(own.mean()), rel=EXACT)
        if not told.moderated:
            half = stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / math.sqrt(len(own))
            assert (told.low, told.high) == pytest.approx(
                (math.exp(own.mean() - half), math.exp(own.mean() + half)), rel=1e-6, nan_ok=True
            )
        checked += 1
    assert checked, "three pairs, in four cells with two ends each"


def test_a_pooled_ratio_is_the_mean_of_its_cells_over_blocks(folder: Path, windows: pd.DataFrame) -> None:
    told = table(folder, "pooled")
    told = told[told.what == "rates"]
    assert set(told.family) == {"production", "consumption", "streaming"}
    for row in told.to_dict("records"):
        found = logs(windows, str(row["architecture"]), str(row["against"]))
        if row["left_out"]:  # cells that a busy machine left without a rate in some block
            continue
        streaming = row["family"] == "streaming"
        role = "consumption" if streaming else row["family"]
        found = found[(found.role == role) & (found["mode"] == ("streaming" if streaming else "split"))]
        means = found.groupby("try").log.mean()
        half = stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / math.sqrt(len(means))
        expected = [means.mean(), means.mean() - half, means.mean() + half]
        told_logs = [math.log(row[name]) for name in ("ratio", "low", "high")]
        assert told_logs == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True)


def test_processor_time_a_message_is_that_of_the_used_windows_over_all_that_was_done_in_them(
    folder: Path, trials: list[dict[str, Any]], requests: pd.DataFrame
) -> None:
    done = requests.groupby(["trial_id", "role", "window_number"]).messages.sum()
    sums: dict[tuple[Any, ...], list[float]] = {}
    for trial in trials:
        for window in used(trial):
            for role, client in CLIENTS.items():
                if window["window"] not in (role, "both"):
                    continue
                key = (trial["architecture"], *(trial[name] for name in CELL[:3]), role)
                spent = [
                    each["cpu_user_s"] + each["cpu_system_s"]
                    for each in trial["resources"]
                    if each["number"] == window["number"] and each["role"] == "broker"
                ]
                total = sums.setdefault(key, [0.0, 0.0])
                total[0] += sum(spent) * 1e6
                total[1] += done.get((trial["trial_id"], client, window["number"]), 0)
    rows = table(folder, "resources")
    told = rows[rows.process == "broker"].set_index(["architecture", *CELL]).cpu_us_per_message
    assert told.to_dict() == pytest.approx({key: cpu / messages for key, (cpu, messages) in sums.items()}, rel=1e-6)
