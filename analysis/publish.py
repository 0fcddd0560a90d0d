"""The results folder's finished part: `tables/`, `figures/` and `report.html`, replaced as a whole or not at all.

An analysis makes everything in a hidden work folder and moves it into place at the end, so one that fails leaves the
former results. One analysis at a time works on a folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import load, two_runs
from analysis.charts import inside, load_curves, paper_figures, ratios, request_time, surfaces
from analysis.charts.style import Drawn
from analysis.errors import InputError
from analysis.findings import Findings
from analysis.load import Place
from analysis.report import formats, page, summary
from analysis.report.columns import without_empty_axes
from analysis.report.tables import every_table
from workloads import results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORK = ".analysis"
LOG = "spark.log"  # there only after Spark has failed
REPORT, TABLES, FIGURES, SUMMARY = "report.html", "tables", "figures", "summary.txt"


@contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder for everything unfinished, empty at the start and gone at the end.

    Raises InputError while another analysis works on the same results.
    """
    work = folder / WORK
    with _locked(folder):
        shutil.rmtree(work, ignore_errors=True)  # left by an analysis that was killed
        try:
            work.mkdir()
        except OSError as error:
            raise InputError(f"{folder} cannot be written to: {error.strerror}") from error
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder for one analysis; the kernel unlocks it when the process ends, even by kill -9."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"another analysis of {folder} is at work: wait for it, or end it") from error
        yield
    finally:
        os.close(descriptor)


def out_folder(place: Place, asked: Path | None) -> Path:
    """Where tables, figures and report go: beside the records unless told otherwise. Raises InputError."""
    if asked is not None:
        return made(asked)
    if isinstance(place, str):
        raise InputError(f"tables, figures and report cannot be written to {place}: name a folder with --out")
    return place


def made(folder: Path) -> Path:
    """The folder, there now. Raises InputError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}") from error
    return folder


def manifest(place: Place, spark: SparkSession | None = None) -> dict[str, Any] | None:
    """The run's own description, or None; shown as it is. Raises InputError where it is not a run's."""
    path = place / results.MANIFEST if isinstance(place, Path) else f"{place}/{results.MANIFEST}"
    text = load.text(path, spark)
    if text is None:
        return None
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    if fault := load.manifest_fault(found):
        raise InputError(f"{path} {fault}")
    return found


def draw(found: Findings) -> list[Drawn]:
    """Every figure for which these records have data, in the order of the page."""
    subjects = (request_time, ratios, load_curves, surfaces, inside, paper_figures)
    return [one for subject in subjects for one in subject.figures(found)]


def publish(
    folder: Path, work: Path, found: Findings, figures: Sequence[Drawn], about: dict[str, Any] | None
) -> summary.Summary:
    """Write every table, figure and the report, and replace the old ones."""
    fresh = work / "fresh"
    answer = summary.summarise(found, about)
    tables = every_table(found, {one.name: one for one in answer.names})
    _write_tables(fresh / TABLES, tables)
    _write_figures(fresh / FIGURES, figures)
    (fresh / SUMMARY).write_text(summary.as_text(answer) + "\n")
    (fresh / REPORT).write_text(page.page(found, answer, tables, figures, about))
    for part in (TABLES, FIGURES, SUMMARY, REPORT):
        _replace(fresh / part, folder / part, work / "old")
    return answer


def publish_comparison(folder: Path, compared: two_runs.Compared) -> str:
    """Write the tables of the comparison of two runs; return the text for a terminal."""
    tables = [table for table in (two_runs.rates(compared), two_runs.ratios(compared)) if table.rows]
    tables = [without_empty_axes(table) for table in tables]
    said = two_runs.sentences(compared)
    warned = [f"Warning: {warning}." for warning in compared.warnings]
    for table in tables:
        results.write_atomically(folder / f"{table.name}.csv", formats.to_csv(table).encode())
        text = "\n".join(
            [*(f"{line}\n" for line in warned), formats.to_markdown(table), *(f"{line}\n" for line in said)]
        )
        results.write_atomically(folder / f"{table.name}.md", text.encode())
    return "\n".join([*(formats.to_markdown(table) for table in tables), *said])


def _write_tables(folder: Path, tables: Sequence[formats.Table]) -> None:
    folder.mkdir(parents=True)
    for table in tables:
        (folder / f"{table.name}.csv").write_text(formats.to_csv(table))
        (folder / f"{table.name}.md").write_text(formats.to_markdown(table))
        (folder / f"{table.name}.tex").write_text(formats.to_latex(table))


def _write_figures(folder: Path, figures: Sequence[Drawn]) -> None:
    folder.mkdir(parents=True)
    for figure in figures:
        (folder / f"{figure.name}.png").write_bytes(figure.png)
        (folder / f"{figure.name}.svg").write_bytes(figure.svg)


def _replace(new: Path, place: Path, old: Path) -> None:
    """Folders cannot be renamed over each other: the old one steps aside first."""
    if place.is_dir():
        old.mkdir(exist_ok=True)
        place.rename(old / place.name)
    new.rename(place)
