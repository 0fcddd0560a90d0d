"""Raw records: checked file by file before Spark starts, and refused as a whole when they cannot be one run's.

A wrong table is worse than none. Every file's schema is compared with `workloads.results`, and a folder that holds two
runs, two schema versions or one trial twice is an error that names the files. Spark checks records at an address that
only Spark reads, folder by folder.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from analysis import former
from analysis.errors import InputError
from workloads import results

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SCALE = "scale.csv"
_SCALE_TEXTS = ("architecture", "source", "change")
_SCALE_NUMBERS = ("brokers", "topics", "groups", "messages")
_NAMES_MAX = 3
_IDENTITY = ("schema_version", "spec_hash", "trial_id", "kind", "cell", "architecture", "try")


# A folder of this machine, or an address that Spark reads: hdfs://..., s3a://...
Place = Path | str


def place_of(text: str) -> Place:
    """The place that a user names. Raises InputError for a file:// address of another machine."""
    if not re.match(r"[a-z][a-z0-9+.-]*:/", text):
        return Path(text)
    address = urlsplit(text)
    if address.scheme != "file":
        return text.rstrip("/")
    if address.netloc not in ("", "localhost"):
        raise InputError(f"{text} names a file of another machine: write file:///...")
    return Path(unquote(address.path))


@dataclass(frozen=True, slots=True)
class Records:
    """The three kinds of raw records, as they are on disk."""

    trials: DataFrame
    requests: DataFrame
    latency: DataFrame


def check(folder: Path) -> int:
    """Check every file; return the bytes of all. Raises InputError that names the file that cannot be this run's."""
    if not folder.is_dir():
        raise InputError(f"no such folder: {folder}")
    found = {kind: sorted((folder / kind).glob("*.parquet")) for kind in _schemas()}
    for kind in (results.TRIALS, results.REQUESTS):
        if not found[kind]:
            raise InputError(f"no raw records in {folder / kind}: has a run finished a trial there?")
    identities = [
        (path.name, row)
        for path in found[results.TRIALS]
        for row in _read_identities(path, _versions(results.TRIALS), _IDENTITY)
    ]
    check_identities(identities)
    before = identities[0][1]["schema_version"] == former.VERSION
    for kind in (results.REQUESTS, results.LATENCY):
        for path in found[kind]:
            _read_identities(path, (_schema(kind, before=before),), ())
    _require_whole_trials(folder, found)
    return sum(path.stat().st_size for files in found.values() for path in files)


def _require_whole_trials(folder: Path, found: dict[str, list[Path]]) -> None:
    """Every trial has a file of its name in each folder: a trial without one would drop out in silence."""
    for kind in (results.REQUESTS, results.LATENCY):
        missing = {path.name for path in found[results.TRIALS]} - {path.name for path in found[kind]}
        if missing:
            raise InputError(
                f"{folder / kind / min(missing)} is missing: a run with --out {folder} does the trial again"
            )


def check_elsewhere(spark: SparkSession, address: str) -> None:
    """As `check`, by Spark: the columns of all files in a folder together, and the identities of the trials."""
    before = False
    for kind in _schemas():
        if not is_there(spark, f"{address}/{kind}"):
            if kind == results.LATENCY:
                continue
            raise InputError(f"no raw records in {address}/{kind}: has a run finished a trial there?")
        found = _types(spark.read.option("mergeSchema", "true").parquet(f"{address}/{kind}").schema)
        allowed = _versions(kind) if kind == results.TRIALS else (_schema(kind, before=before),)
        differ: list[list[str]] = [sorted(dict(found.items() ^ _types(_spark_schema(one)).items())) for one in allowed]
        if all(differ):
            least = min(differ, key=len)
            raise InputError(f"{address}/{kind} has other columns ({_listed(least)}); {_THIS_READS}")
        before = before or (kind == results.TRIALS and _WINDOWS not in found)
    trials = _read(spark, address, results.TRIALS, results.trial_schema()).select(*_IDENTITY, "_metadata.file_name")
    check_identities((row["file_name"], row.asDict()) for row in trials.collect())


def is_there(spark: SparkSession, address: str) -> bool:
    """Whether a file or folder has this address: Spark looks when it is asked to read it, before it reads."""
    from pyspark.errors import AnalysisException

    try:
        spark.read.format("binaryFile").load(address)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
    return True


def _schemas() -> dict[str, pa.Schema]:
    return {
        results.TRIALS: results.trial_schema(),
        results.REQUESTS: results.request_schema(),
        results.LATENCY: results.latency_schema(),
    }


def _read_identities(path: Path, allowed: Sequence[pa.Schema], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Check one file's schema; return these columns of its rows."""
    try:
        with pq.ParquetFile(path) as file:
            _check_schema(path, file, allowed)
            rows: list[dict[str, Any]] = file.read(columns=list(columns)).to_pylist() if columns else []
            return rows
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n", 1)[0]
        folder = path.parent
        first = "remove it, and " if folder.name == results.TRIALS else ""  # a run looks there for finished trials
        mend = f"{first}a run with --out {folder.parent} does the trial again"
        raise InputError(f"{path} is no whole Parquet file: {mend} ({reason})") from error


def _check_schema(path: Path, file: pq.ParquetFile, allowed: Sequence[pa.Schema]) -> None:
    found = file.schema_arrow
    if any(found.equals(one) for one in allowed):
        return
    expected = min(allowed, key=lambda one: len({*one.names} ^ {*found.names}))
    if "schema_version" in found.names:
        versions = set(file.read(columns=["schema_version"])["schema_version"].to_pylist())
        if not versions <= _VERSIONS:
            raise InputError(f"{path} has schema version {_listed(versions)}; {_THIS_READS}")
    for field in expected:
        at = found.get_field_index(field.name)
        if at < 0:
            raise InputError(f"{path} has no column {field.name!r}; {_THIS_READS}")
        if found.field(at).type != field.type:
            kinds = f"{found.field(at).type}, not {field.type}"
            raise InputError(f"{path}: column {field.name!r} holds {kinds}; {_THIS_READS}")
    raise InputError(f"{path} has columns that raw records do not have, or in another order; {_THIS_READS}")


def _versions(kind: str) -> tuple[pa.Schema, ...]:
    """The columns that records may have: those of today, and those of before."""
    before = _schema(kind, before=True)
    return _schema(kind, before=False), before, former.without_system(before)


def _schema(kind: str, *, before: bool) -> pa.Schema:
    now = _schemas()[kind]
    return former.schema(kind, now) if before else now


def _types(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema}


_VERSIONS = frozenset({former.VERSION, results.SCHEMA_VERSION})
_WINDOWS = "windows"  # a column of trials that version 2 lacks
_THIS_READS = f"this analysis reads raw records of schema version {former.VERSION} or {results.SCHEMA_VERSION}"


def check_identities(trials: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Refuse trials (file name, identity) that cannot belong to one run."""
    versions: dict[object, str] = {}
    hashes: dict[object, str] = {}
    files: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for name, row in trials:
        if not results.NAME.fullmatch(row["architecture"] or ""):
            raise InputError(
                f"{name} cannot be of the architecture {row['architecture']!r}: a name has {results.NAME_RULE}"
            )
        versions.setdefault(row["schema_version"], name)
        hashes.setdefault(row["spec_hash"], name)
        files["trial", row["trial_id"]].append(name)
        if row["kind"] == "measured":
            files["try", row["cell"], row["architecture"], row["try"]].append(name)
    if len(versions) > 1 or not versions.keys() <= _VERSIONS:
        raise InputError(f"trials have schema version {_listed(versions)}; {_THIS_READS}")
    if len(hashes) > 1:
        raise InputError(f"trials of {len(hashes)} different specs are mixed here: {_listed(hashes.values())}")
    for key, names in files.items():
        if len(names) > 1:
            raise InputError(f"{' '.join(map(str, key))} is there more than once: {_listed(names)}")


def _listed(values: Iterable[object]) -> str:
    texts = sorted(str(value) for value in values)
    return ", ".join(texts[:_NAMES_MAX]) + (" and more" if len(texts) > _NAMES_MAX else "")


def load(spark: SparkSession, place: Place) -> Records:
    """The records of a place that has passed its check."""
    before = _is_of_before(spark, place)
    trials, requests, latency = (_records(spark, place, kind, before) for kind in _schemas())
    return Records(trials, requests, latency)


def _records(spark: SparkSession, place: Place, kind: str, before: bool) -> DataFrame:
    found = _read(spark, place, kind, _schema(kind, before=before))
    return former.filled(kind, found, _types(_spark_schema(_schemas()[kind]))) if before else found


def _is_of_before(spark: SparkSession, place: Place) -> bool:
    """Whether the records are of version 2: one file says so, since a folder that mixes versions is refused."""
    if isinstance(place, Path):
        names = pq.read_schema(min((place / results.TRIALS).glob("*.parquet"))).names
    else:
        names = spark.read.parquet(f"{place}/{results.TRIALS}").columns
    return _WINDOWS not in names


def manifest_fault(found: object) -> str:
    """Why what a manifest.json holds is not what a run wrote; empty where it is. That of version 2 says more."""
    if isinstance(found, dict) and found.get("schema_version") == former.VERSION:
        return results.manifest_fault({**found, "schema_version": results.SCHEMA_VERSION})
    return results.manifest_fault(found)


def scale(spark: SparkSession | None, place: Place) -> list[dict[str, Any]]:
    """The rows that `brokerlab scale --out DIR` wrote here. Raises InputError where it is no such table."""
    path = place / SCALE if isinstance(place, Path) else f"{place}/{SCALE}"
    lines = (text(path, spark) or "").splitlines()
    try:
        return [
            {name: int(row[name]) if name in _SCALE_NUMBERS else row[name] for name in (*_SCALE_TEXTS, *_SCALE_NUMBERS)}
            for row in csv.DictReader(lines)
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not what `brokerlab scale` writes: {error!r}; write it again") from error


def text(path: Place, spark: SparkSession | None) -> str | None:
    """The text of a small file, or None where there is none. An address needs Spark."""
    if isinstance(path, Path):
        return path.read_text() if path.is_file() else None
    assert spark is not None, "only Spark reads addresses"
    if not is_there(spark, path):
        return None
    found: str = spark.read.text(path, wholetext=True).collect()[0]["value"]
    return found


def _read(spark: SparkSession, place: Place, kind: str, schema: pa.Schema) -> DataFrame:
    if isinstance(place, Path):
        address = (place / kind).absolute().as_uri()
        there = (place / kind).is_dir()
    else:
        address = f"{place}/{kind}"
        there = is_there(spark, address)
    kinds = _spark_schema(schema)
    return spark.read.schema(kinds).parquet(address) if there else spark.createDataFrame(schema.empty_table())


def _spark_schema(schema: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
