"""Apache Kafka's jars in the user's cache, fetched once: `python -m workloads.systems.kafka_jars` fetches all of them.

Each version has a lock file beside this one: every jar by its Maven coordinates, with its checksum. Ivy fetches exactly
these, an ordinary client of Maven's repositories that comes with PySpark; so nothing is needed that `make setup` does
not install, and which repository is Maven's central one is Ivy's knowledge. A mirror of the user's `~/.m2/settings.xml`
is asked in its place, through the proxy that the environment names, with what MAVEN_OPTS tells Java.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from workloads.errors import BrokerlabError, UserError
from workloads.processes.java import find_java
from workloads.processes.process import tethered
from workloads.services.zookeeper import jars as jars_of_pyspark
from workloads.systems.architectures import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

# By the row of the table of architectures; 3.9 is the last line of Kafka that can do without KRaft.
VERSIONS: Final = {"kafka-kraft": "4.3.1", "kafka-zookeeper": "3.9.2"}
LOCKS: Final = Path(__file__).parent
_MIRRORED: Final = frozenset(
    {"*", "external:*", "central"}
)  # what `mirrorOf` says of a mirror of the central repository
_SETTINGS: Final = """\
<ivysettings><settings defaultResolver="maven"/><resolvers>
<ibiblio name="maven" m2compatible="true" usepoms="false" useMavenMetadata="false" checksums=""{root}/>
</resolvers></ivysettings>
"""
_MODULE: Final = """\
<ivy-module version="2.0"><info organisation="brokerlab" module="kafka"/><dependencies>
{dependencies}
</dependencies></ivy-module>
"""
# What Ivy says of its failure, the cause before the consequence.
_REASONS: Final = (
    re.compile(r"\((java\S*Exception: [^)\n]*)\)"),
    re.compile(r'Exception in thread "main" (.*)'),  # no space, for example
    re.compile(r"(Host \S+ not found)"),
    re.compile(r"^\s*:: (\S+: not found)", re.MULTILINE),
)


class NotFetched(UserError):
    """Jars did not come, or not as they should be; the message says which and why."""


class Jar(NamedTuple):
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def locked(version: str) -> tuple[Jar, ...]:
    """Every jar of a version of Kafka."""
    text = (LOCKS / f"kafka-{version}.lock").read_text()
    return tuple(Jar(*line.replace(":", " ").split()) for line in text.splitlines())


def folder_of(version: str) -> Path:
    """Where the jars of a version are, or will be."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "brokerlab" / f"kafka-{version}"


@cache
def jars(version: str) -> Path:
    """The folder with the jars of a version, each of them checked; fetched if it is not there. Raises `UserError` where
    a jar of the cache is damaged or Ivy is missing, `NotFetched`."""
    folder = folder_of(version)
    if not folder.exists():
        _fetch(version, folder)
    elif fault := _fault(version, folder):
        raise UserError(f"{fault}; remove {folder}, and Kafka {version} is fetched again")
    return folder


def _program(row: str) -> Program:
    version = VERSIONS[row]

    def found() -> str:
        if not folder_of(version).exists():
            raise UserError(f"Kafka {version} is not there; a run of {row} fetches it, or `make kafka`")
        return version

    return Program(row, found, lambda: folder_of(version), "make kafka", optional=True, bring=lambda: jars(version))


KRAFT: Final = _program("kafka-kraft")
ZOOKEEPER: Final = _program("kafka-zookeeper")


def _fetch(version: str, folder: Path) -> None:
    """Into a folder of another name at first, so that no half of it is ever found."""
    print(f"fetching Kafka {version} into {folder}", file=sys.stderr, flush=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as work:
            fetched = Path(work) / "jars"
            _run_ivy(version, Path(work), fetched)
            if fault := _fault(version, fetched):
                raise NotFetched(f"Kafka {version} was not fetched: {fault}")
            if not folder.exists():  # else somebody else was quicker
                fetched.replace(folder)
    except OSError as error:
        raise NotFetched(f"Kafka {version} was not fetched: {folder.parent}: {error.strerror or error}") from error


def _fault(version: str, folder: Path) -> str:
    """The faults of the jars in a folder; empty where there are none."""
    for jar in locked(version):
        try:
            found = hashlib.sha256((folder / jar.name).read_bytes()).hexdigest()
        except OSError as error:
            return f"{folder / jar.name}: {error.strerror}"
        if found != jar.sha256:
            return f"{folder / jar.name} has the checksum {found} and not {jar.sha256}"
    return ""


def _run_ivy(version: str, work: Path, into: Path) -> None:
    root = mirror()
    (work / "settings.xml").write_text(_SETTINGS.format(root=f" root={quoteattr(root)}" if root else ""))
    dependencies = "\n".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false"/>'
        for jar in locked(version)
    )
    (work / "ivy.xml").write_text(_MODULE.format(dependencies=dependencies))
    options = ["-warn", "-settings", f"{work}/settings.xml", "-ivy", f"{work}/ivy.xml", "-cache", f"{work}/cache"]
    command = [find_java().command, *_java_options(), "-jar", str(_ivy()), *options]
    done = subprocess.run(
        tethered([*command, "-retrieve", f"{into}/[artifact]-[revision].[ext]"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        found = [match[1] for reason in _REASONS if (match := reason.search(done.stdout))]
        reason = [*found, *reversed(done.stdout.strip().splitlines()), "Ivy said nothing"][0]
        raise NotFetched(f"Kafka {version} was not fetched from Maven's repository: {reason}")


def _ivy() -> Path:
    found = sorted(jars_of_pyspark().glob("ivy-*.jar"))
    if not found:
        raise UserError("Ivy comes with PySpark's jars, and is not there; `make setup` installs them")
    return found[-1]


def mirror() -> str:
    """The address of the user's mirror of the central repository; empty where there is none. Raises `UserError`."""
    settings = Path.home() / ".m2" / "settings.xml"
    try:
        root = ElementTree.parse(settings).getroot()  # noqa: S314 - a file of the user's own
    except FileNotFoundError:
        return ""
    except (OSError, ElementTree.ParseError) as error:
        raise UserError(f"{settings} cannot be read: {error}") from error
    for element in root.iter():
        if element.tag.rpartition("}")[2] == "mirror":
            said = {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in element}
            if _MIRRORED & set(said.get("mirrorOf", "").split(",")):
                return said.get("url", "")
    return ""


def _java_options() -> Sequence[str]:
    """Java does not look at the environment's proxies by itself."""
    proxies, options = getproxies(), []
    for scheme in ("http", "https"):
        address = urlsplit(proxies.get(scheme, ""))
        if address.hostname:
            options += [f"-D{scheme}.proxyHost={address.hostname}", f"-D{scheme}.proxyPort={address.port or 80}"]
    if bypassed := proxies.get("no"):
        names = (name.strip() for name in bypassed.split(","))
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(f'*{name}' if name[:1] == '.' else name for name in names)}")
    return [*options, *shlex.split(os.environ.get("MAVEN_OPTS", ""))]


def main() -> int:
    try:
        for version in VERSIONS.values():
            print(f"Kafka {version}: {jars(version)}", flush=True)
    except BrokerlabError as error:
        print(f"kafka: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
