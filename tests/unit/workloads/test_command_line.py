"""The command line: light, helpful, and one line for each error."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from workloads import __main__ as command_line
from workloads.__main__ import COMMANDS, main
from workloads.errors import BrokerlabError, UserError

HEAVY = {"grpc", "pyarrow", "pyspark", "numpy", "rich", "yaml", "pandas", "matplotlib", "confluent_kafka"}


def imported_by(*arguments: str) -> set[str]:
    """Names of all modules that a command loads, in a Python of its own."""
    program = (
        "import sys\nfrom workloads.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["status", "--help"], ["nosuch"]])
def test_help_and_refusals_import_nothing_heavy(arguments: list[str]) -> None:
    assert imported_by(*arguments).isdisjoint(HEAVY)


def test_status_starts_no_spark(tmp_path: Path) -> None:
    assert imported_by("status", str(tmp_path)).isdisjoint({"pyspark", "grpc", "rich", "matplotlib"})


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"brokerlab {name}" in said.partition("example")[2]
    assert COMMANDS[name] in said[0].lower() + said[1:].lower() or COMMANDS[name].lower() in " ".join(
        said.lower().split()
    )


def test_the_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {line}" in said for name, line in COMMANDS.items())
    assert "example: brokerlab run" in said


@pytest.mark.parametrize("arguments", [[], ["nosuch"], ["run", "--nosuch"], ["status", "a", "b"]])
def test_what_is_no_command_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "brokerlab" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["topic", "create", "x", "--partitions", "2000000"], "from 1 to 100,000, not '2000000'"),
        (["topic", "create", "x", "--replication-factor", "0"], "from 1 to 10,000, not '0'"),
        (["tables", "--broker", "x"], "from 1 to 32, not 'x'"),
        (["tables", "--broker", "٣"], "from 1 to 32, not '٣'"),
        (["cluster", "up", "--brokers", "33"], "from 1 to 32, not '33'"),
        (["scale", "--seed", "9" * 5000], "from 0 to 9,223,372,036,854,775,807, not '999"),
    ],
)
def test_a_number_that_cannot_be_is_refused_with_what_is_allowed(
    words: list[str], allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert f"it must be a whole number {allowed}" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["/proc", "/proc/below"])
def test_scale_counts_nothing_that_it_could_not_write(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "--out", folder]) == 2
    said, error = capsys.readouterr()
    assert said == ""
    assert error.startswith(f"brokerlab: {folder} cannot be written to: ")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let every command raise an error."""

    def fail(error: BaseException) -> None:
        def run(_: object) -> int:
            raise error

        module = SimpleNamespace(add_arguments=lambda _: None, run=run)
        monkeypatch.setattr(command_line, "import_module", lambda _: module)

    return fail


@pytest.fixture
def _own_signals() -> Iterator[None]:
    """A command that was interrupted hears no more; these tests go on."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_own_signals")
@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("that folder is no run's"), 2, "brokerlab: that folder is no run's\n"),
        (BrokerlabError("a trial failed"), 1, "brokerlab: a trial failed\n"),
        (KeyboardInterrupt(), 130, "brokerlab: interrupted\n"),
        (OSError(28, "No space left on device", "/full/x"), 1, "brokerlab: No space left on device: /full/x\n"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_an_exit_code(
    failing: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    line: str,
) -> None:
    failing(error)
    assert main(["status"]) == code
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize("arguments", [["--debug", "status"], ["status", "--debug"]])
def test_debug_shows_the_traceback(failing: Callable[[BaseException], None], arguments: list[str]) -> None:
    failing(UserError("shown"))
    with pytest.raises(UserError, match="shown"):
        main(arguments)


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m workloads --help | head -c 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
