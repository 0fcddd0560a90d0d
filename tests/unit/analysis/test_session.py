from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from analysis.errors import EngineError
from analysis.session import _interruptible


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


def _lose_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    raise EngineError("the job was cancelled")
