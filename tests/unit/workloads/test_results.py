"""Raw records: buckets, schemas, atomic files, and what is refused when it is read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.histograms import bucket_range_ns
from tests.made_records import MadeTrial, trial_row
from workloads import results
from workloads.errors import UserError
from workloads.results import LATENCY, REQUESTS, TRIALS, ResultsFolder, bucket_of, file_name

times_ns = st.integers(0, 2**63 - 1)

REQUEST = {
    "role": "producer", "client": 0, "window_number": 1, "partition": 1, "requests": 1, "messages": 20, "bytes": 640,
    "sent_ns": 5, "done_ns": 9, "status": "ok", "latency_index": None, "latency_count": None,
}  # fmt: skip


@given(times_ns)
def test_a_value_lies_in_the_range_of_its_bucket(value: int) -> None:
    low, high = bucket_range_ns(bucket_of(value))
    assert low <= value <= high


@given(times_ns)
def test_a_bucket_is_narrower_than_a_thousandth_of_its_values(value: int) -> None:
    low, high = bucket_range_ns(bucket_of(value))
    assert (high - low) * 1000 <= low


@given(st.integers(0, 60_000))
def test_buckets_lie_side_by_side_without_gaps(index: int) -> None:
    low, high = bucket_range_ns(index)
    assert bucket_of(low) == bucket_of(high) == index
    assert bucket_range_ns(index + 1)[0] == high + 1


@given(times_ns, times_ns)
def test_larger_values_never_have_lower_buckets(one: int, other: int) -> None:
    assert (bucket_of(one) <= bucket_of(other)) or one > other


def test_small_values_have_buckets_of_their_own() -> None:
    assert [bucket_range_ns(bucket_of(value)) for value in range(2048)] == [(value, value) for value in range(2048)]


def row(trial_id: str = "cell/static/1", **columns: Any) -> dict[str, Any]:
    return {**trial_row(MadeTrial("static", name=trial_id)), **columns}


def request(trial_id: str = "cell/static/1") -> dict[str, Any]:
    return {"trial_id": trial_id, **REQUEST}


def test_files_hold_exactly_the_columns_of_their_schemas(tmp_path: Path) -> None:
    ResultsFolder(tmp_path).write_trial(row(), [request()])
    schemas = {TRIALS: results.trial_schema(), REQUESTS: results.request_schema(), LATENCY: results.latency_schema()}
    for kind, schema in schemas.items():
        (path,) = (tmp_path / kind).iterdir()
        assert pq.read_schema(path).equals(schema), kind


def test_a_request_comes_back_as_it_was_written(tmp_path: Path) -> None:
    ResultsFolder(tmp_path).write_trial(row(), [request()])
    assert pq.read_table(tmp_path / REQUESTS).to_pylist() == [request()]


def test_finished_trials_are_read_with_verdict_and_reason(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    folder.write_trial(row("a/static/1"), [])
    folder.write_trial(row("b/static/1", verdict="failed", reason="broker-2 was ended by SIGKILL"), [])
    assert folder.finished_trials() == {
        "a/static/1": ("valid", ""),
        "b/static/1": ("failed", "broker-2 was ended by SIGKILL"),
    }


def test_a_trial_that_runs_again_takes_the_place_of_its_first_try(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    folder.write_trial(row(verdict="failed", reason="x"), [request(), request()])
    folder.write_trial(row(), [request()])
    assert folder.finished_trials() == {"cell/static/1": ("valid", "")}
    assert pq.read_table(tmp_path / REQUESTS).num_rows == 1


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("kind", [REQUESTS, LATENCY, TRIALS])
def test_a_kill_before_or_in_any_file_leaves_no_half_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = ResultsFolder(tmp_path)
    real = pq.write_table

    def dies_half_way(table: pa.Table, path: Path, **options: object) -> None:
        real(table, path, **options)
        if path.parent.name == kind:
            path.write_bytes(path.read_bytes()[:-20])
            raise Killed

    monkeypatch.setattr(pq, "write_table", dies_half_way)
    with pytest.raises(Killed):
        folder.write_trial(row(), [request()])
    monkeypatch.undo()
    assert folder.finished_trials() == {}
    for path in tmp_path.rglob("*.parquet"):
        pq.read_table(path)
    folder.write_trial(row(), [request()])
    assert folder.finished_trials() == {"cell/static/1": ("valid", "")}


def test_what_a_killed_writer_leaves_is_no_record(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    folder.write_trial(row(), [request()])
    (tmp_path / TRIALS / ".cell__static__2.parquet.4711.tmp").write_bytes(b"PAR1 and then the end")
    assert folder.finished_trials() == {"cell/static/1": ("valid", "")}
    assert pq.read_table(tmp_path / TRIALS).num_rows == 1


def test_a_damaged_row_is_named_with_what_to_do(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    folder.write_trial(row(), [])
    (path,) = (tmp_path / TRIALS).iterdir()
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UserError, match=r"cell__static__1\.parquet is damaged; remove it, and the trial runs again"):
        folder.finished_trials()


@pytest.mark.parametrize("kind", [REQUESTS, LATENCY])
def test_a_trial_whose_other_records_are_damaged_or_missing_is_not_finished(tmp_path: Path, kind: str) -> None:
    folder = ResultsFolder(tmp_path)
    folder.write_trial(row("a/static/1"), [request("a/static/1")])
    folder.write_trial(row("b/static/1"), [request("b/static/1")])
    path = tmp_path / kind / file_name("b/static/1")
    path.write_bytes(path.read_bytes()[:-20])
    what_to_do = f"a run with --out {tmp_path} does the trial again"
    damaged = ("failed", f"{path} is damaged; {what_to_do}")
    assert folder.finished_trials() == {"a/static/1": ("valid", ""), "b/static/1": damaged}
    path.unlink()
    missing = ("failed", f"{path} is missing; {what_to_do}")
    assert folder.finished_trials() == {"a/static/1": ("valid", ""), "b/static/1": missing}


@given(st.lists(st.sampled_from(["a", "B", "7", "=", ",", ".", "-", "_", "/", " ", "\0", "é"]), min_size=1))
def test_a_trials_file_name_is_one_component_of_a_path(characters: list[str]) -> None:
    name = file_name("".join(characters))
    assert Path(name).name == name
    assert "\0" not in name


def test_no_manifest_is_none(tmp_path: Path) -> None:
    assert ResultsFolder(tmp_path).read_manifest() is None


MANIFEST = {
    "schema_version": results.SCHEMA_VERSION, "spec_hash": "abc", "profile": "quick", "started": "now", "ended": None,
    "planned": [], "sizes": {},
}  # fmt: skip


def test_a_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "new")
    folder.write_manifest(MANIFEST)
    assert folder.read_manifest() == MANIFEST
    assert [path.name for path in folder.path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is damaged"),
        (b'{"schema_version": 1, ', "is damaged"),
        (b"\xff\xfe\x00", "is damaged"),
        (b"[]", "another version"),
        (b'{"schema_version": 99}', "another version"),
        (b'{"schema_version": 3, "spec_hash": "x", "profile": "p"}', "lacks ended, planned, started"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused_by_name(tmp_path: Path, content: bytes, complaint: str) -> None:
    folder = ResultsFolder(tmp_path)
    folder.manifest_path.write_bytes(content)
    with pytest.raises(UserError, match=complaint) as refused:
        folder.read_manifest()
    assert str(folder.manifest_path) in str(refused.value)


def test_a_manifest_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultsFolder(tmp_path)
    folder.write_manifest(MANIFEST)

    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write_manifest({**MANIFEST, "ended": "later"})
    assert json.loads(folder.manifest_path.read_text()) == MANIFEST
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
