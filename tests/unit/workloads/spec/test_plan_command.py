from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.workloads.spec.files import FILE, experiment, text
from workloads.commands import plan as command
from workloads.errors import PlanError, SpecError


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_text(text())


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(arguments))


def free(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(count, 0, count))


def test_the_plan_says_cells_trials_order_time_and_disk(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("profile steady (")
    assert lines[0].endswith("): 6 cells x 4 architectures x 3 blocks = 72 trials, 1 round of windows of 1 s each")
    assert lines[2].split() == ["cell", "experiments", "zookeeper", "zookeeper-watch", "dsbs", "static"]
    assert sum(line.startswith("message_size=") for line in lines) == 6
    assert "  block 2: 6 cells from message_size=32,batch_size=20,mode=streaming" in lines
    assert lines[-2].startswith("expected: about ")
    assert lines[-1].startswith("disk at the peak: ")


def test_with_a_budget_the_sure_blocks_are_shown_and_what_the_rest_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    Path(FILE).write_text(text().replace("tries: 4", "tries: 4, rounds: 2, budget_s: 9000, precision: 2.5%"))
    assert run("--profile", "paper") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "6 cells x 4 architectures x 4 blocks = 96 trials, 2 rounds of 30,000 messages each" in lines[0]
    assert "  then more rounds, and blocks, for what is not known to 0.025 of its ratio, up to 2.5 h in all" in lines
    assert sum(line.startswith("  block ") for line in lines) == 4
    assert lines[-2].startswith("expected: about 2.5 h, ")


def test_clusters_with_other_settings_are_named_by_their_first_cell(capsys: pytest.CaptureFixture[str]) -> None:
    Path(FILE).write_text(experiment("brokers: [3, 4]"))
    assert run("--messages", "1000") == 0
    (block,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  block 1: ")]
    fleets = block.removeprefix("  block 1: ").split("; ")
    assert sorted(fleet.rpartition(",")[2] for fleet in fleets) == ["brokers=3", "brokers=4"]
    assert all(fleet.startswith("1 cell from message_size=32") for fleet in fleets)


def test_one_of_each_is_written_in_the_singular(capsys: pytest.CaptureFixture[str]) -> None:
    only = ("architecture=dsbs", "message_size=8B", "mode=split", "try=1")
    assert run("--profile", "paper", *(word for each in only for word in ("--only", each))) == 0
    assert "1 cell x 1 architecture x 1 block = 1 trial, 1 round of 30,000 messages each" in capsys.readouterr().out


def test_the_same_is_there_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--messages", "500") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["length"]["messages"] == 500
    assert found["estimate"]["trials"] == 72
    assert found["free_bytes"] > 0
    assert [each["block"] for each in found["order"]] == [1, 2, 3]
    for each in found["order"]:
        assert sorted(each["cells"]) == sorted(cell["id"] for cell in found["cells"])
        assert each["architectures"] == ["zookeeper", "zookeeper-watch", "dsbs", "static"]
        assert each["cluster"]["brokers"] == "3"


def test_a_plan_that_the_disk_cannot_hold_is_shown_and_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, 1000)
    with pytest.raises(PlanError, match="1,000 are free"):
        run()
    assert "disk at the peak" in capsys.readouterr().out


def test_a_trial_that_will_hardly_end_in_time_is_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--profile", "paper") == 0
    assert "note:" not in capsys.readouterr().out
    assert run("--profile", "paper", "--messages", "3_000_000", "--only", "batch_size=1") == 0
    assert "note: the longest trial is expected to take" in capsys.readouterr().out


def test_long_plans_are_cut_with_a_word_about_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    many = ", ".join(str(each) for each in range(1, 151))
    Path(FILE).write_text(experiment(batch=f"[{many}]").replace("tries: 1}", "tries: 12}"))
    assert run("--messages", "1000") == 0
    out = capsys.readouterr().out
    assert "and 50 more cells (--json shows all)" in out
    assert "and 2 more blocks (--json shows all)" in out


def test_on_a_terminal_the_table_is_drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run() == 0
    assert "┃" in capsys.readouterr().out


@pytest.mark.parametrize("count", ["0", "-1", "1e6", "many", "٣", " 5", "10_000_000_001"])
def test_messages_must_be_a_whole_number(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--messages", count)
    assert caught.value.code == 2
    assert (
        f"it must be a whole number from 1 to 10,000,000,000, in plain digits; not {count!r}" in capsys.readouterr().err
    )


def test_parts_stand_behind_one_only_or_several(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for words in (["--only", "mode=split", "batch_size=20"], ["--only", "mode=split", "--only", "batch_size=20"]):
        assert run(*words, "--json") == 0
        said.append(json.loads(capsys.readouterr().out)["order"])
    assert said[0] == said[1]
    assert {cell for each in said[0] for cell in each["cells"]} == {
        f"message_size={size},batch_size=20,mode=split" for size in (8, 32)
    }


def test_the_file_may_stand_behind_the_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FILE).rename(tmp_path / "mine.yaml")
    assert run("--json", "--only", "mode=split", "mine.yaml") == 0
    assert json.loads(capsys.readouterr().out)["profile"] == "steady"


@pytest.mark.parametrize("words", [["nowhere.yaml"], ["mode=split", "nowhere.yaml"], ["mode=split", "dsbs", "try=1"]])
def test_a_word_that_is_no_part_is_refused_with_where_the_file_stands(words: list[str]) -> None:
    message = "must be key=value, such as architecture=dsbs; if it is the file, write it before --only"
    with pytest.raises(PlanError, match=f"--only (nowhere.yaml|dsbs): {message}"):
        run("--only", *words)
    with pytest.raises(PlanError, match=f"--only {FILE}: {message}"):
        run(FILE, "--only", "mode=split", FILE)


def test_a_missing_file_and_an_unknown_profile_are_the_users_to_mend() -> None:
    with pytest.raises(SpecError, match=r"other\.yaml: cannot be read: No such file") as spec_error:
        run("other.yaml")
    with pytest.raises(PlanError, match="did you mean 'paper'") as plan_error:
        run("--profile", "papre")
    assert spec_error.value.exit_code == plan_error.value.exit_code == 2


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0034, "3.4 ms"), (0.9999, "1 s"), (61.24, "61.2 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_times_are_written_as_one_would_say_them(seconds: float, words: str) -> None:
    assert command._duration(seconds) == words


@pytest.mark.parametrize(("count", "words"), [(0, "0 B"), (999, "999 B"), (1_500_000, "1.5 MB"), (2.5e15, "2,500 TB")])
def test_bytes_are_written_in_powers_of_a_thousand(count: float, words: str) -> None:
    assert command._bytes(count) == words


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, workloads.commands.plan\n"
        "print([m for m in ('yaml', 'rich', 'pyarrow', 'pandas', 'workloads.spec.spec') if m in sys.modules])"
    )
    root = Path(command.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout == "[]\n"
