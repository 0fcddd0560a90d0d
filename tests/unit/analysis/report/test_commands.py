from __future__ import annotations

import shlex
from pathlib import Path

from analysis.findings import Findings
from analysis.report import commands
from tests.made_report import MANIFEST
from workloads.spec.plan import resolve
from workloads.spec.selection import KEYS
from workloads.spec.spec import load

EXPERIMENTS = Path(__file__).parents[4] / "experiments.yaml"


def test_the_command_names_the_profile_and_the_part_that_is_asked_for() -> None:
    assert commands.again(MANIFEST) == "brokerlab run --profile steady"
    assert commands.again(None, ["mode=load"]) == "brokerlab run --profile PROFILE --only mode=load"
    cell = ("brokers=5,load=60%", 20, 32, "load")
    assert commands.again(MANIFEST, commands.only(cell)) == (
        "brokerlab run --profile steady --only message_size=32B batch_size=20 mode=load brokers=5 load=60%"
    )


def test_a_shell_reads_a_name_as_one_word() -> None:
    words = shlex.split(commands.again({"profile": "a b; rm -r /"}, ["rtt_ms=$(date)"]))
    assert words[3:] == ["a b; rm -r /", "--only", "rtt_ms=$(date)"]


def test_the_command_of_a_cell_selects_this_cell_and_no_other() -> None:
    only = commands.only(("", 20, 32, "streaming"))
    assert {part.partition("=")[0] for part in only} <= set(KEYS)
    plan = resolve(load(EXPERIMENTS), "steady", only)
    assert [(cell.message_size, cell.batch_size, cell.mode) for cell in plan.cells] == [(32, 20, "streaming")]


def test_every_cell_has_a_command_and_a_place_of_its_own(steady: Findings) -> None:
    every = commands.cells(steady, MANIFEST)
    assert len(every) == 14 + 6
    assert len({anchor for _, anchor, _ in every}) == len({text for _, _, text in every}) == len(every)
