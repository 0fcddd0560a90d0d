"""One Spark session and one analysed run for tests of DataFrame functions; findings without Spark for all others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis import pipeline, publish
from analysis.charts.style import Drawn
from analysis.findings import Findings
from analysis.session import spark_session
from tests import made_findings, made_records
from workloads.processes.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    work = tmp_path_factory.mktemp("spark")
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("JAVA_HOME", str(find_java().home))
            session = stack.enter_context(spark_session(work, work / "kept.log"))
        yield session


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_records.write(tmp_path_factory.mktemp("small") / "run", made_records.small_run())


@pytest.fixture(scope="session")
def analysed(spark: SparkSession, run_folder: Path) -> Findings:
    """What Spark finds of the small run."""
    return pipeline.findings(spark, run_folder, lambda step: None)


@pytest.fixture(scope="session")
def found() -> Findings:
    """The same without Spark, for all that only arranges findings."""
    return made_findings.small()


@pytest.fixture(scope="session")
def drawn(found: Findings) -> list[Drawn]:
    return publish.draw(found)
