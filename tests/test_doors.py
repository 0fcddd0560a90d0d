"""What a new coordinator of ours brings with it, and where alone it is named: docs/coordination.md says so. One from
outside the product touches nothing at all (tests/toys)."""

from __future__ import annotations

import ast

import pytest

from coordinators.registry import BACK_ENDS
from tests.test_tidy import ROOT, product_files, tree_of
from workloads.systems.architectures import ORDINARY, OURS, ROWS
from workloads.systems.brokerlab import SERVICES

DOCUMENT = (ROOT / "docs" / "coordination.md").read_text(encoding="utf-8")
# Modules that name a coordinator outside of its folder, the registry and the table, and why.
NAMING: dict[str, str] = {
    "analysis/charts/style.py": "colours that stay the same from run to run; others get the next that is free",
    "analysis/findings.py": "the control, and the pair that the paper compared",
    "workloads/commands/scale.py": "the command of the module below, whose choices these are",
    "workloads/scale.py": "its two ways to count: simulated rounds of one, requests of the other",
    "analysis/report/naming.py": "what its architectures' names mean, in words",
}
# Also the name of a service, of its process and of its place.
SERVICES_TOO = set(SERVICES)


@pytest.mark.parametrize("name", BACK_ENDS)
def test_a_coordinator_has_a_folder_a_row_a_place_in_the_suite_and_its_page(name: str) -> None:
    assert BACK_ENDS[name].startswith(f"coordinators.{name}.")
    assert [row.name for row in ROWS.values() if row.coordinator == name] == [name]
    assert (ROOT / "tests" / "contract" / "backends" / f"{name}.py").is_file()
    told = [line for line in DOCUMENT.splitlines() if f"| `{name}` |" in line]
    assert all(any(f"`{each.name}`" in line for line in told) for each in ORDINARY.values() if each.row == name)


def test_every_coordinator_of_the_table_is_in_the_registry_and_every_service_can_be_started() -> None:
    ours = [row for row in ROWS.values() if row.system == OURS]
    assert {row.coordinator for row in ours} == set(BACK_ENDS)
    assert {row.service for row in ours if row.service is not None} == set(SERVICES)


def test_nothing_else_of_the_product_names_a_coordinator() -> None:
    homes = (
        "coordinators/registry.py",
        "workloads/systems/architectures.py",
        *(f"coordinators/{n}/" for n in BACK_ENDS),
    )
    names = set(BACK_ENDS) - SERVICES_TOO
    found = {
        place
        for path in product_files()
        if not (place := str(path.relative_to(ROOT))).startswith(homes)
        and any(isinstance(node, ast.Constant) and node.value in names for node in ast.walk(tree_of(path)))
    }
    assert found <= NAMING.keys(), "a coordinator is chosen by the table"
