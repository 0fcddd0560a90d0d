"""Plans for tests: small, resolved from a spec's text as a user's would be."""

from __future__ import annotations

from typing import Any

from tests.unit.workloads.spec.files import spec, text
from workloads.results import SCHEMA_VERSION
from workloads.spec.plan import Plan, resolve

EXPERIMENTS = "experiments: {one: {message_size: 32B, batch_size: [10, 20], mode: [split, streaming]}}"


def plan(
    *,
    architectures: str = "architectures: {static: {coordinator: static}}",
    experiments: str = EXPERIMENTS,
    profile: str = "{experiments: one, messages: 300, tries: 1}",
    trials: str = "trials: {warmup: 0, seed: 1, timeout_s: 60}",
) -> Plan:
    """The plan of a profile; on one architecture, without warm-ups, unless more is asked for."""
    source = text(
        architectures=architectures, experiments=experiments, profiles=f"profiles: {{steady: {profile}}}", trials=trials
    )
    return resolve(spec(source), "steady")


def manifest_of(of: Plan, **changed: Any) -> dict[str, Any]:
    """The manifest of a run that has just begun, as far as a run reads it back."""
    return {
        "schema_version": SCHEMA_VERSION, "spec_hash": of.spec_hash, "profile": of.profile, "started": "",
        "ended": None, "planned": [], "tries": of.effort.tries, "spent": {}, "blocks": {}, "rounds": {},
        "sustained": {}, **changed,
    }  # fmt: skip
