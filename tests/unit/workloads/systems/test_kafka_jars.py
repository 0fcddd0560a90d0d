"""Kafka's jars: which are wanted, where they are, and one line for each way in which they do not come."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from workloads.errors import UserError
from workloads.processes.java import find_java
from workloads.systems import kafka_jars
from workloads.systems.kafka_jars import KRAFT, VERSIONS, NotFetched, jars, locked, main

SMALL = ("one.two:three:4.5", b"a jar")
# A Java that says its version; else it is Ivy, does what the test wants, and is told where to by its last word.
JAVA = """#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "21.0.1"' >&2; exit 0; }
for last do :; done
folder=${last%/*}
{ echo "$@" > "$ASKED"; } 2> /dev/null
"""


@pytest.fixture(autouse=True)
def _asked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache and home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "MAVEN_OPTS"):
        monkeypatch.delenv(name, raising=False)
    jars.cache_clear()
    find_java.cache_clear()
    yield
    jars.cache_clear()
    find_java.cache_clear()


@pytest.fixture
def _small_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that is one small jar."""
    coordinates, content = SMALL
    (tmp_path / "kafka-0.1.lock").write_text(f"{coordinates} {hashlib.sha256(content).hexdigest()}\n")
    monkeypatch.setattr(kafka_jars, "LOCKS", tmp_path)


def ivy(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Let Java do this in Ivy's place; the file will hold what it was asked for."""
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA + script)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    monkeypatch.setenv("ASKED", str(folder / "asked"))
    return folder / "asked"


@pytest.mark.parametrize("version", VERSIONS.values())
def test_every_jar_of_a_version_is_locked_by_its_checksum(version: str) -> None:
    found = locked(version)
    assert f"kafka_2.13-{version}.jar" in {jar.name for jar in found}
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in found)
    assert len({jar.name for jar in found}) == len({(jar.group, jar.artifact) for jar in found}) == len(found)


def test_only_the_version_with_zookeeper_brings_a_client_of_it() -> None:
    clients = {
        row: [jar.name for jar in locked(version) if jar.artifact == "zookeeper"] for row, version in VERSIONS.items()
    }
    assert clients["kafka-kraft"] == []
    assert len(clients["kafka-zookeeper"]) == 1


def test_a_version_that_was_not_fetched_is_said_to_be_missing_with_what_brings_it() -> None:
    with pytest.raises(UserError, match="a run of kafka-kraft fetches it, or `make kafka`"):
        KRAFT.version()
    assert KRAFT.optional


@pytest.mark.usefixtures("_small_lock")
def test_what_lies_in_the_cache_is_used_without_java_and_network(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "brokerlab" / "kafka-0.1"
    folder.mkdir(parents=True)
    (folder / "three-4.5.jar").write_bytes(SMALL[1])
    assert jars("0.1") == folder


@pytest.mark.usefixtures("_small_lock")
@pytest.mark.parametrize(
    ("content", "said"), [(b"another", "has the checksum .* and not"), (None, "No such file")], ids=["changed", "gone"]
)
def test_a_damaged_cache_is_refused_with_what_to_remove(tmp_path: Path, content: bytes | None, said: str) -> None:
    folder = tmp_path / "cache" / "brokerlab" / "kafka-0.1"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "three-4.5.jar").write_bytes(content)
    with pytest.raises(UserError, match=f"three-4.5.jar.*{said}.*; remove {folder}"):
        jars("0.1")


@pytest.mark.usefixtures("_small_lock")
def test_what_is_missing_is_fetched_whole_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ivy(tmp_path, monkeypatch, 'mkdir "$folder"; printf "a jar" > "$folder/three-4.5.jar"')
    folder = jars("0.1")
    assert (folder / "three-4.5.jar").read_bytes() == SMALL[1]
    assert [path.name for path in folder.parent.iterdir()] == ["kafka-0.1"]


@pytest.mark.usefixtures("_small_lock")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('mkdir "$folder"; printf "half" > "$folder/three-4.5.jar"', "three-4.5.jar has the checksum"),
        ('mkdir "$folder"', "three-4.5.jar: No such file"),
        ('echo "	:: one.two#three;4.5: not found"; exit 1', "one.two#three;4.5: not found"),
        (
            'echo "	:: one#two;3: not found"; echo "error at url x (java.net.UnknownHostException: x)"; exit 1',
            "java.net.UnknownHostException: x",
        ),
        (
            'echo "	Host some.where not found. url=x"; echo "	:: one#two;3: not found"; exit 1',
            "repository: Host some.where not found",
        ),
        (
            """echo '....Exception in thread "main" java.io.IOException: No space left'; echo '	at Main:2'; exit 1""",
            "repository: java.io.IOException: No space left",
        ),
        ("echo first; echo last; exit 1", "last"),
        ("exit 1", "Ivy said nothing"),
    ],
    ids=["wrong", "missing", "unknown", "no network", "no host", "no space", "other", "silent"],
)
def test_a_fetch_that_fails_says_why_in_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    ivy(tmp_path, monkeypatch, script)
    with pytest.raises(NotFetched) as caught:
        jars("0.1")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache" / "brokerlab").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cache").write_text("")
    assert main() == 2
    assert "was not fetched" in capfd.readouterr().err.splitlines()[-1]


@pytest.mark.usefixtures("_small_lock")
def test_ivy_is_asked_through_the_proxy_with_what_maven_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ivy(tmp_path, monkeypatch, "exit 1")
    monkeypatch.setenv("https_proxy", "http://some.proxy:3128")
    monkeypatch.setenv("no_proxy", "here,.there")
    monkeypatch.setenv("MAVEN_OPTS", "-Dsome='a b' -Xmx1g")
    with pytest.raises(NotFetched):
        jars("0.1")
    words = asked.read_text()
    assert "-Dhttps.proxyHost=some.proxy -Dhttps.proxyPort=3128" in words
    assert "-Dhttp.nonProxyHosts=here|*.there" in words
    assert "-Dsome=a b -Xmx1g -jar" in words


@pytest.mark.parametrize(
    ("mirror_of", "asked"), [("central", True), ("*", True), ("external:*,!mine", True), ("mine", False)]
)
def test_a_mirror_of_the_users_settings_is_asked_in_the_place_of_the_repository(
    tmp_path: Path, mirror_of: str, *, asked: bool
) -> None:
    settings = tmp_path / ".m2" / "settings.xml"
    settings.parent.mkdir()
    settings.write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors><mirror><id>m</id>'
        f"<mirrorOf>{mirror_of}</mirrorOf><url>http://mirror.test/maven</url></mirror></mirrors></settings>"
    )
    assert (kafka_jars.mirror() == "http://mirror.test/maven") is asked


def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    settings = tmp_path / ".m2" / "settings.xml"
    settings.parent.mkdir()
    settings.write_text("<settings>")
    with pytest.raises(UserError, match=re.escape(f"{settings} cannot be read")):
        kafka_jars.mirror()
