from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from typing import NoReturn

import pytest

from analysis import console
from analysis.errors import EngineError, InputError


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """A command changes its whole process; here that is the tests'."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)
    logging.disable(logging.NOTSET)


def failing(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError("no such folder"), 2, "brokerlab: no such folder\n"),
        (EngineError("Spark did not start"), 1, "brokerlab: Spark did not start\n"),
        (KeyboardInterrupt(), 130, "brokerlab: interrupted; what was there before is unchanged\n"),
    ],
)
def test_an_error_is_an_exit_code_and_one_line(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert console.ended(lambda: failing(error), debug=False) == code
    assert capsys.readouterr() == ("", words)


def test_debug_shows_the_error_itself() -> None:
    with pytest.raises(InputError):
        console.ended(lambda: failing(InputError("no such folder")), debug=True)


def test_sigterm_unwinds_like_any_exit() -> None:
    with pytest.raises(SystemExit) as ended:
        console.ended(lambda: signal.raise_signal(signal.SIGTERM), debug=False)
    assert ended.value.code == 143
