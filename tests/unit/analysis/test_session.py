from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from analysis import session
from analysis.errors import EngineError
from analysis.session import _interruptible
from workloads.processes.java import find_java


def test_an_interruption_that_was_lost_in_a_callback_is_none_of_the_engines_errors() -> None:
    jvm = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(KeyboardInterrupt), _interruptible(jvm):
        _lose_an_interruption()
    assert jvm.wait(60) == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_without_an_interruption_stays_what_it_is() -> None:
    jvm = subprocess.Popen([sys.executable, "-c", ""])
    jvm.wait(60)
    with pytest.raises(EngineError, match="out of luck"), _interruptible(jvm):
        raise EngineError("out of luck")


@pytest.mark.java
def test_classes_that_do_not_fit_are_ignored_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "spark.jsa"
    monkeypatch.setattr(session, "_CLASSES", archive)
    assert session._archive_options(archives=False) == []
    archive.write_bytes(b"another Java's" * 1_000)
    options = session._archive_options(archives=False)
    assert options
    started = subprocess.run([find_java().command, *options, "-version"], capture_output=True, check=True)
    plain = subprocess.run([find_java().command, "-version"], capture_output=True, check=True)
    assert (started.stdout, started.stderr.split()[:3]) == (plain.stdout, plain.stderr.split()[:3])


def test_a_java_that_archives_no_classes_is_told_and_leaves_the_former_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, unfinished = tmp_path / "share" / "spark.jsa", tmp_path / "share" / "spark.new"
    monkeypatch.setattr(session, "_CLASSES", archive)
    monkeypatch.setattr(session, "_UNFINISHED", unfinished)
    session._archive_options(archives=True)
    archive.write_bytes(b"former")
    with pytest.raises(EngineError, match="archives no classes"):
        session._publish_archive()
    assert archive.read_bytes() == b"former"
    unfinished.write_bytes(b"later")
    session._publish_archive()
    assert (archive.read_bytes(), unfinished.exists()) == (b"later", False)


def _lose_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    raise EngineError("the job was cancelled")
