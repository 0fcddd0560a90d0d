"""What the bare machine is given of this one; the campaign itself needs root, debootstrap and minutes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.campaigns import bare


@pytest.mark.parametrize(
    ("release", "suite"),
    [
        ('ID=debian\nVERSION_CODENAME=trixie\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n', "trixie"),
        ("ID=ubuntu\nVERSION_CODENAME=noble\n", "bookworm"),
        ("", "bookworm"),
    ],
)
def test_the_suite_is_this_machines_where_it_is_a_debian(release: str, suite: str) -> None:
    assert bare.suite_of(release) == suite


@pytest.mark.parametrize(
    ("sources", "mirror"),
    [
        ("Types: deb\nURIs: http://one/debian\nSuites: bookworm\n\nURIs: http://two/debian\n", "http://one/debian"),
        (
            "# deb http://old/debian bookworm main\ndeb [signed-by=/a] https://one/debian bookworm main\n",
            "https://one/debian",
        ),
        ("", None),
    ],
)
def test_the_mirror_is_the_first_that_this_machine_has_packages_from(sources: str, mirror: str | None) -> None:
    assert bare.mirror_of(sources) == mirror


def test_a_root_is_given_a_clone_and_what_pip_is_told_of_files_and_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels, certificate, home = tmp_path / "wheels", tmp_path / "ca.pem", tmp_path / "home"
    for folder in (wheels, home / ".config" / "pip", tmp_path / "root"):
        folder.mkdir(parents=True)
    certificate.write_text("a certificate")
    (home / ".config" / "pip" / "pip.conf").write_text(f"[global]\nfind-links = {wheels}\n")
    for name, value in (("HOME", home), ("PIP_CERT", certificate), ("PIP_INDEX_URL", f"https://x{certificate}")):
        monkeypatch.setenv(name, str(value))
    root = bare.Root(tmp_path / "root")
    root.furnish()
    inside = tmp_path / "root"
    assert (inside / str(certificate).lstrip("/")).read_text() == "a certificate"
    assert (inside / "root/.config/pip/pip.conf").read_text() == f"[global]\nfind-links = {wheels}\n"
    assert str(wheels) in root.folders
    assert root.environment["PIP_INDEX_URL"] == f"https://x{certificate}"
    assert "HOME" not in root.environment
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=bare.REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    checkout = inside / bare.CHECKOUT.lstrip("/")
    assert (checkout / ".git" / "shallow").read_text() == head
    root.hosts("127.0.0.1 localhost\n")
    assert (inside / "etc" / "hosts").read_text() == "127.0.0.1 localhost\n"
    root.hosts(None)
    assert not (inside / "etc" / "hosts").exists()


def test_who_cannot_make_a_root_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bare, "which", lambda name: None if name == "debootstrap" else name)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert bare.missing() == "debootstrap is not there (Debian: apt-get install debootstrap)"
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "run it as root" in bare.missing()
