"""docs/wire.md says what the registries say."""

from __future__ import annotations

from pathlib import Path

from brokers.listeners.pipeline import State
from brokers.wire.apis.table import SERVED
from brokers.wire.errors import MalformedReason

TEXT = (Path(__file__).parents[4] / "docs" / "wire.md").read_text()


def test_the_table_of_apis_is_what_is_served() -> None:
    rows = [
        f"| {api.key.name.title().replace('_', '')} | {api.version_min}-{api.version_max} |" for api in SERVED.values()
    ]
    assert [line for line in TEXT.splitlines() if line in rows] == rows


def test_every_reason_for_a_refusal_is_named() -> None:
    assert [reason.name for reason in MalformedReason if reason.name not in TEXT] == []


def test_the_states_of_a_connection_are_those_of_its_machine() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and line.split()[1] in State.__members__]
    assert [row.split()[1] for row in rows] == [state.name for state in State]
