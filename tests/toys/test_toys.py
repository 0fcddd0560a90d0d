"""What stands outside the product is as good as what is in it: a file of experiments names it, a run measures it, and
it is in every table and figure, without any other file being touched. So is a cluster that somebody else runs."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runs.short_runs import command, rows, spec_file
from tests.integration.runs.theirs import cluster
from tests.unit.workloads.spec.files import refusal, text
from workloads.results import ResultsFolder

ORACLE = "tests.toys.oracle.architecture:ORACLE"
WRAPPED = "tests.toys.wrapped.system:WRAPPED"
MESSAGES = 300


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a run of all of them, with its analysis; `elsewhere` is a cluster of a playground."""
    folder = tmp_path_factory.mktemp("toys")
    with cluster(folder) as bootstrap:
        file = spec_file(
            folder,
            architectures="architectures:\n"
            "  static: {coordinator: static}\n"
            f"  oracle: {{coordinator: {ORACLE}, pause_ms: 5}}\n"
            f"  wrapped: {{system: {WRAPPED}}}\n"
            f"  elsewhere: {{system: external, bootstrap: '{bootstrap}'}}",
            workload="workload: {driver: kafka}",
            experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming]}}",
            profiles="profiles: {steady: {experiments: one, architectures: [static, oracle, wrapped, elsewhere], "
            f"messages: {MESSAGES}, tries: 2}}}}",
        )
        ended = subprocess.run(
            command("run", file, "--out", folder / "results"),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        yield folder / "results"


pytestmark = [pytest.mark.timeout(300)]


@pytest.mark.java
def test_every_one_of_them_is_measured_and_audited(results: Path) -> None:
    found = list(rows(results).values())
    assert {row["verdict"] for row in found} == {"valid"}
    assert {row["architecture"] for row in found} == {"static", "oracle", "wrapped", "elsewhere"}
    assert {row[count] for row in found for count in ("sent", "acknowledged", "stored", "consumed")} == {MESSAGES}


@pytest.mark.java
def test_brokers_load_the_coordinator_that_the_file_names_with_its_options(results: Path) -> None:
    for row in of(results, "oracle"):
        asked = [each for each in row["coordination"] if each["operation"] == "lookup"]
        assert sum(each["count"] for each in asked) >= MESSAGES / 10
        assert sum(each["wait_s"] for each in asked) >= 0.005


@pytest.mark.java
def test_a_system_starts_its_brokers_in_its_own_way(results: Path) -> None:
    logs = sorted((results / "logs").glob("block-1-wrapped-*/broker-*.log"))
    assert len(logs) == 3
    assert all("a broker in other clothes" in log.read_text() for log in logs)


@pytest.mark.java
def test_the_manifest_says_what_each_architecture_is(results: Path) -> None:
    manifest = ResultsFolder(results).read_manifest()
    assert manifest is not None
    found = {each.pop("name"): each for each in manifest["architectures"]}
    assert found["static"] == {
        "system": "brokerlab", "row": "static", "metadata": "memory", "offsets": "journal", "delay_us": 0,
    }  # fmt: skip
    assert found["oracle"] == {"system": "brokerlab", "row": ORACLE, "pause_ms": 5}
    assert found["wrapped"] == {"system": "tests.toys.wrapped.system:Wrapped", "row": WRAPPED}
    assert found["elsewhere"]["system"] == "external"


@pytest.mark.java
@pytest.mark.parametrize("name", ["oracle", "wrapped", "elsewhere"])
def test_it_is_in_the_tables_the_figures_and_the_report(results: Path, name: str) -> None:
    for file in (f"tables/{name}_performance.csv", "tables/comparison.csv", "tables/audit.csv", "report.html"):
        assert (results / file).is_file()
        assert name in file or name in (results / file).read_text()
    assert any(name in path.stem for path in (results / "figures").glob("ratio_*.svg")), "beside another"


@pytest.mark.java
def test_what_a_system_cannot_tell_is_left_out_and_is_no_zero(results: Path) -> None:
    for row in of(results, "elsewhere"):
        assert {each["role"] for each in row["resources"]} == {"producer", "consumer"}
        assert row["coordination"] is row["broker_requests"] is None
    assert "elsewhere" not in {line["architecture"] for line in table(results, "coordination_cost")}
    processes = {line["process"] for line in table(results, "resources") if line["architecture"] == "elsewhere"}
    assert processes == {"producer", "consumer"}


def of(results: Path, architecture: str) -> list[dict[str, Any]]:
    found = [row for row in rows(results).values() if row["architecture"] == architecture]
    assert len(found) == 4
    return found


def table(results: Path, name: str) -> list[dict[str, str]]:
    with (results / "tables" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("entry", "piece", "message"),
    [
        ("coordinator: nowhere:ROW", "nowhere:ROW", "nowhere:ROW cannot be loaded: No module named 'nowhere'"),
        ("coordinator: tests.toys:ROW", "tests.toys:ROW", "cannot be loaded: module 'tests.toys' has no"),
        ("coordinator: csv:reader", "csv:reader", "csv:reader is no row of architectures"),
        (f"coordinator: {WRAPPED}", WRAPPED, "that is named by the key 'system'"),
        (f"system: {ORACLE}", ORACLE, "that is named by the key 'coordinator'"),
        (f"coordinator: {ORACLE}, pause_ms: 5000", "5000", "pause_ms cannot be '5000': it must be a whole number"),
        (f"coordinator: {ORACLE}, metadata: watch", "metadata", "cannot have 'metadata': only the coordinator"),
        (f"coordinator: {ORACLE}, pause: 5", "pause:", "unknown key 'pause' in architecture 'x'; did you mean 'p"),
        ("coordinator: dsbs, system: external", "system", "has both 'coordinator' and 'system'"),
        ("system: external", "{system: external", "architecture 'x' lacks the key 'bootstrap'"),
        ("system: external, bootstrap: here", "here", "bootstrap cannot be 'here': it must be HOST:PORT"),
        ("system: external, bootstrap: 'a:1,b:0'", "'a:1,b:0'", "bootstrap cannot be 'a:1,b:0': it must be HOST:PORT"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_where_it_stands(entry: str, piece: str, message: str) -> None:
    source = text(architectures=f"architectures: {{x: {{{entry}}}}}")
    error = refusal(source)
    before = source[: source.index(piece)].split("\n")
    assert message in error.message
    assert (error.line, error.column) == (len(before), len(before[-1]) + 1)


def test_a_profile_that_a_system_cannot_serve_is_refused() -> None:
    source = text(architectures="architectures: {x: {system: external, bootstrap: 'a:1'}}")
    assert "profile 'steady': 'x' cannot have driver: grpc, which 'message-size' asks for" in str(refusal(source))
