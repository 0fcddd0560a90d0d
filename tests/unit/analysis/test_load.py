from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis import load
from analysis.errors import InputError
from tests import former_records, made_records
from tests.made_records import MadeTrial
from workloads import results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_records.write(tmp_path / "run", [MadeTrial("static"), MadeTrial("dsbs")])


def trial_file(folder: Path) -> Path:
    return folder / "trials" / results.file_name(MadeTrial("dsbs").trial_id)


def rewrite(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path)


def with_column(table: pa.Table, name: str, value: object) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array([value] * len(table), table.schema.field(at).type))


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        load.check(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == [], message


def test_good_records_are_measured_in_bytes(folder: Path) -> None:
    assert load.check(folder) == sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def test_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "no such folder", "nowhere")


def test_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "no such folder")


def test_empty_folder_has_no_raw_records(tmp_path: Path) -> None:
    refused(tmp_path, "no raw records", "trials")


def test_trials_without_requests_are_refused(folder: Path) -> None:
    for path in (folder / "requests").iterdir():
        path.unlink()
    refused(folder, "no raw records", "requests")


@pytest.mark.parametrize(
    ("kind", "first"), [("trials", "remove it, and "), ("requests", "file: "), ("latency", "file: ")]
)
def test_truncated_file_is_named_with_what_mends_it(folder: Path, kind: str, first: str) -> None:
    path = folder / kind / trial_file(folder).name
    path.write_bytes(path.read_bytes()[:-20])
    refused(folder, str(path), "no whole Parquet file", f"{first}a run with --out {folder} does the trial again")


@pytest.mark.parametrize("kind", ["requests", "latency"])
def test_missing_file_of_a_trial_is_named_with_what_mends_it(folder: Path, kind: str) -> None:
    path = folder / kind / trial_file(folder).name
    path.unlink()
    refused(folder, f"{path} is missing: a run with --out {folder} does the trial again")


def test_damaged_rows_are_named(folder: Path) -> None:
    path = trial_file(folder)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    refused(folder, str(path), "no whole Parquet file")


def test_other_schema_version_is_named_even_with_other_columns(folder: Path) -> None:
    path = trial_file(folder)
    rewrite(path, with_column(pq.read_table(path), "schema_version", 7).drop_columns(["fsync"]))
    refused(folder, str(path), "schema version 7")


@pytest.mark.parametrize("version", [7, 2])
def test_other_schema_version_is_refused_though_the_columns_are_the_same(folder: Path, version: int) -> None:
    path = trial_file(folder)
    rewrite(path, with_column(pq.read_table(path), "schema_version", version))
    first, second = sorted((version, results.SCHEMA_VERSION))
    refused(folder, f"schema version {first}, {second}; this analysis reads")


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """A folder of version 2."""
    streaming = MadeTrial("static", mode="streaming")
    return former_records.write(tmp_path / "former", [MadeTrial("static"), MadeTrial("dsbs"), streaming])


def test_records_of_version_2_are_good(former: Path) -> None:
    assert load.check(former) == sum(path.stat().st_size for path in former.rglob("*.parquet"))
    refused(made_records.write(former, [MadeTrial("zookeeper")]), "schema version 2, 3")


@pytest.mark.parametrize("kind", ["requests", "latency"])
def test_records_of_one_version_beside_trials_of_the_other_are_refused(folder: Path, former: Path, kind: str) -> None:
    now, before = (place / kind / trial_file(place).name for place in (folder, former))
    kept = now.read_bytes()
    now.write_bytes(before.read_bytes())
    refused(folder, str(now), "no column 'window_number'")
    before.write_bytes(kept)
    refused(former, str(before), "columns that raw records do not have")


def test_trials_of_before_that_name_no_system_are_good(former: Path) -> None:
    path = trial_file(former)
    rewrite(path, pq.read_table(path).drop_columns(["system"]))
    assert load.check(former) > 0
    rewrite(path, pq.read_table(path).drop_columns(["fsync"]))
    refused(former, str(path), "no column 'fsync'")


def test_a_manifest_of_version_2_is_a_runs_and_another_is_not() -> None:
    assert load.manifest_fault(made_records.manifest(schema_version=2)) == ""
    assert load.manifest_fault(made_records.manifest()) == ""
    assert "another version" in load.manifest_fault(made_records.manifest(schema_version=1))
    lame = {name: value for name, value in made_records.manifest(schema_version=2).items() if name != "spec_hash"}
    assert "lacks spec_hash" in load.manifest_fault(lame)


SCALE = "architecture,source,change,brokers,topics,groups,messages\ndsbs,rule,broker dies,3,10,10,21\n"


def test_the_cost_of_scale_is_read_where_it_is_there_and_refused_where_it_is_no_such_table(folder: Path) -> None:
    assert load.scale(None, folder) == []
    (folder / load.SCALE).write_text(SCALE)
    (row,) = load.scale(None, folder)
    assert (row["architecture"], row["change"], row["brokers"], row["messages"]) == ("dsbs", "broker dies", 3, 21)
    (folder / load.SCALE).write_text(SCALE.replace("21", "many"))
    with pytest.raises(InputError, match=r"scale.csv is not what `brokerlab scale` writes"):
        load.scale(None, folder)


def test_missing_column_is_named(folder: Path) -> None:
    path = folder / "requests" / trial_file(folder).name
    rewrite(path, pq.read_table(path).drop_columns(["sent_ns"]))
    refused(folder, str(path), "no column 'sent_ns'")


def test_column_of_another_type_is_named(folder: Path) -> None:
    path = folder / "requests" / trial_file(folder).name
    table = pq.read_table(path)
    at = table.schema.get_field_index("messages")
    rewrite(path, table.set_column(at, "messages", table["messages"].cast(pa.float64())))
    refused(folder, str(path), "'messages' holds double, not int64")


def test_unknown_column_is_refused(folder: Path) -> None:
    path = folder / "requests" / trial_file(folder).name
    table = pq.read_table(path)
    rewrite(path, table.append_column("more", table["messages"]))
    refused(folder, str(path), "columns that raw records do not have")


def test_trials_of_another_spec_are_refused(folder: Path) -> None:
    made_records.write(folder, [MadeTrial("static", try_=2, columns={"spec_hash": "other"})])
    refused(folder, "2 different specs are mixed")


@pytest.mark.parametrize("name", ["../../../x", "a/b", "a<b", "", None, ".", "a\nb", "$x$", "Zoo", "a" * 41])
def test_an_architecture_that_no_file_can_be_named_after_is_refused(folder: Path, name: str | None) -> None:
    path = trial_file(folder)
    rewrite(path, with_column(pq.read_table(path), "architecture", name))
    refused(folder, path.name, f"cannot be of the architecture {name!r}")


def test_trial_that_is_there_twice_is_refused_with_both_files(folder: Path) -> None:
    copy = trial_file(folder).with_name("copy.parquet")
    copy.write_bytes(trial_file(folder).read_bytes())
    refused(folder, "more than once", "copy.parquet", trial_file(folder).name)


def test_two_trials_of_one_try_are_refused(folder: Path) -> None:
    made_records.write(folder, [MadeTrial("dsbs", name="the same again")])
    refused(folder, "try", "dsbs 1 is there more than once")


def test_unfinished_files_of_a_killed_run_are_not_read(folder: Path) -> None:
    (folder / "trials" / ".half.parquet.1.tmp").write_bytes(b"PAR1")
    (folder / "requests" / "orphan.parquet").write_bytes((folder / "requests" / trial_file(folder).name).read_bytes())
    assert load.check(folder) > 0
