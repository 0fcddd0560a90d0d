"""One Spark session, and one analysed run, for all tests of DataFrame functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis import pipeline, publish
from analysis.charts.paper_figures import Drawn
from analysis.findings import Findings
from analysis.session import spark_session
from tests import made_records
from tests.made_records import MadeTrial
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


def small_run() -> list[MadeTrial]:
    """Two sizes and two batch sizes, two modes, three tries of three architectures; one trial of them is invalid."""
    speed = {"zookeeper": 100_000.0, "dsbs": 200_000.0, "static": 250_000.0}
    made = made_records.calibrations(3)
    for number in (1, 2, 3):
        for name, rps in speed.items():
            for size, batch in ((8, 20), (32, 20), (32, 1)):
                for mode in ("split", "streaming"):
                    broken = (name, number, size, batch, mode) == ("dsbs", 2, 8, 20, "split")
                    made.append(
                        MadeTrial(
                            name,
                            production_s=30_000 / rps * (1 + number / 100),
                            consumption_s=30_000 / rps * (1 - number / 100),
                            message_size=size,
                            batch_size=batch,
                            mode=mode,
                            try_=number,
                            columns={"verdict": "invalid", "reason": "stored 29999 of 30000"} if broken else {},
                        )
                    )
    return made


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_records.write(tmp_path_factory.mktemp("small") / "run", small_run())


@pytest.fixture(scope="session")
def drawn(found: Findings) -> list[Drawn]:
    return publish.draw(found)


@pytest.fixture(scope="session")
def found(spark: SparkSession, run_folder: Path) -> Findings:
    return pipeline.findings(spark, run_folder, lambda step: None)
