"""docs/experiments.md and the file that is shipped say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.workloads.spec.files import FILE, refusal, spec
from workloads.spec import keys
from workloads.spec.estimate import estimate
from workloads.spec.keys import Key
from workloads.spec.plan import resolve
from workloads.spec.spec import load
from workloads.systems.architectures import ROWS, row_kind, row_of

ROOT = Path(__file__).parents[4]
DOCUMENT = (ROOT / "docs" / "experiments.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", DOCUMENT, flags=re.DOTALL)
TABLES: dict[str, dict[str, Key]] = {
    "cluster": keys.CLUSTER,
    "architectures": {key: Key(row_kind(key)) for key in ("coordinator", "system")}
    | {key: option.key for row in ROWS.values() if not row.coordinator for key, option in row.options.items()},
    "workload": keys.WORKLOAD | keys.PERMISSIONS,
    "experiments": keys.EXPERIMENT | keys.LOAD,
    "profiles": keys.PROFILE,
    "trials": keys.TRIALS,
    "pin": keys.PIN,
}


def rows(section: str) -> dict[str, tuple[str, str]]:
    """Key -> allowed, default of the table under a heading."""
    part = re.split(rf"\n##+ {section}\n", DOCUMENT)[1].split("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|", part, flags=re.MULTILINE)
    return {key: (allowed, default.strip("`")) for key, allowed, default in found}


@pytest.mark.parametrize("section", TABLES)
def test_every_key_is_documented_as_it_is_read(section: str) -> None:
    documented = rows(section)
    for key, entry in TABLES[section].items():
        allowed, default = documented[key]
        assert allowed.replace("`", "") == entry.kind.allowed, key
        if entry.default is not None:
            assert default == entry.default, key


def test_the_names_of_a_profile_are_documented_too() -> None:
    assert set(rows("profiles")) == {"experiments", "architectures", "primary", *keys.PROFILE}


def test_every_choice_of_a_coordinator_is_documented_as_it_is_read() -> None:
    part = DOCUMENT.split("### What our coordinators let a file choose")[1].split("###")[0]
    documented = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.*?) \| (.*?) \|$", part, flags=re.MULTILINE)
    read = [
        (row.coordinator, key, option.key.kind.allowed, option.key.default or "none")
        for row in ROWS.values()
        if row.coordinator
        for key, option in row.options.items()
    ]
    assert [(name, key, allowed.replace("`", ""), default) for name, key, allowed, default in documented] == read


def test_the_whole_file_of_the_document_is_read_and_can_be_planned() -> None:
    (example,) = (each for each in EXAMPLES if each.startswith("version") and "brokres" not in each)
    pieces = {name: piece for name in ("careful", "pin") for piece in EXAMPLES if piece.strip().startswith(f"{name}:")}
    example = example.replace("\n\ntrials:", f"\n{pieces['careful']}\n{pieces['pin']}\ntrials:")
    found = spec(example)
    assert all(resolve(found, profile.name).trials for profile in found.profiles)
    careful = resolve(found, "careful")
    assert (careful.effort.precision, careful.effort.budget_s) == (0.05, 900.0)
    assert careful.primary == (("dsbs", "zookeeper"),)
    assert found.pin.clients == (1,)


def test_the_messages_of_the_document_are_those_of_the_program() -> None:
    (source,) = (each for each in EXAMPLES if "brokres" in each)
    assert f"{refusal(source)}\n" in DOCUMENT


def test_the_file_that_is_shipped_is_read_and_every_profile_of_it_can_be_planned() -> None:
    found = load(ROOT / FILE)
    names = [profile.name for profile in found.profiles]
    assert {"steady", "quick", "paper", "explain", "why", "full", "reference", "bench"} <= set(names)
    for name in names:
        assert estimate(resolve(found, name)).longest_trial_s < resolve(found, name).timeout_s


def test_the_paper_profile_is_the_papers_set_up() -> None:
    """One request under way is what its rates at batch size 1 fit (docs/decisions/0048)."""
    plan = resolve(load(ROOT / FILE), "paper")
    assert plan.length.messages == 30_000
    assert len(plan.blocks) == 4
    assert len(plan.cells) == 14
    assert {cell.workload.in_flight for cell in plan.cells} == {1}
    assert {(cell.message_size, cell.batch_size) for cell in plan.cells} == {
        *((size, 20) for size in (8, 16, 32, 64, 128)),
        *((32, batch) for batch in (1, 20, 50)),
    }


def test_the_reference_profile_has_the_cells_of_steady_on_two_of_ours_and_two_of_kafkas() -> None:
    shipped = load(ROOT / FILE)
    steady, reference = resolve(shipped, "steady"), resolve(shipped, "reference")
    assert set(reference.cells) == {cell for cell in steady.cells if cell.mode != "load"}
    assert {row_of(each).system for each in steady.architectures} == {"brokerlab"}
    names = ["zookeeper-watch", "dsbs", "kafka-kraft", "kafka-zookeeper"]
    assert [each.name for each in reference.architectures] == names


def test_the_bench_profile_has_a_place_for_the_address_that_make_writes_there() -> None:
    (architecture,) = [each for each in load(ROOT / FILE).architectures if each.row == "external"]
    address = str(dict(architecture.options)["bootstrap"])
    assert (ROOT / FILE).read_text().count(address) == 1
    assert address.replace(".", r"\.") in (ROOT / "Makefile").read_text()
    assert architecture in resolve(load(ROOT / FILE), "bench").architectures


def test_the_quick_profile_has_the_tries_that_it_takes_to_tell_the_papers_two_apart() -> None:
    plan = resolve(load(ROOT / FILE), "quick")
    assert {"zookeeper", "dsbs"} == {architecture.name for architecture in plan.architectures}
    assert len(plan.blocks) >= 4, "an interval from fewer tries holds most ratios on a machine with other work"
    assert estimate(plan).seconds < 100, "which is half as much again as it takes on two cores"


def test_the_steady_profile_has_the_cells_of_the_paper_with_the_usual_requests_under_way_and_latency_under_load() -> (
    None
):
    shipped = load(ROOT / FILE)
    steady, paper = resolve(shipped, "steady"), resolve(shipped, "paper")
    others = [cell for cell in steady.cells if cell.mode != "load"]
    assert {(cell.message_size, cell.batch_size, cell.mode) for cell in others} == {
        (cell.message_size, cell.batch_size, cell.mode) for cell in paper.cells
    }
    assert {cell.workload.in_flight for cell in steady.cells} == {5}
    assert [cell.load for cell in steady.cells if cell.mode == "load"] == [0.3, 0.6, 0.9]
    assert len(steady.blocks) > steady.effort.tries >= 3, "fresh clusters, as many as there is time for"


def test_every_comparison_that_is_shipped_for_ours_has_an_instruments_zero() -> None:
    """Two architectures of equal settings: what differs between them is chance (docs/experiments.md)."""
    shipped = load(ROOT / FILE)
    for name in ("steady", "why", "full", "scaling", "commit", "rtt"):
        settings = [each.settings for each in resolve(shipped, name).architectures]
        assert len(set(settings)) == len(settings) - 1, name
