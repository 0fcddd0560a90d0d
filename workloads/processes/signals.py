"""Ctrl-C and SIGTERM as one wish to end, however often it is uttered.

An orderly end takes a moment: processes are stopped, folders removed. A user who presses Ctrl-C again in that moment
wants the same as before, and an interruption would leave folders and processes behind. So the first signal counts, and
later ones are ignored. If that takes too long there is SIGKILL: children are tethered.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from types import FrameType

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
END_GRACE_S: Final = 15.0  # an analysis gives its JVM 10

T = TypeVar("T")


def hear_no_more() -> None:
    """From now on neither signal does anything: this process is ending."""
    for number in SIGNALS:
        signal.signal(number, _unheard)  # SIG_IGN would be handed down to children


def _unheard(_number: int, _frame: FrameType | None) -> None:
    return


@contextmanager
def heard_once(act: Callable[[], None]) -> Iterator[None]:
    """Within, the first of the signals does `act`; those after it do nothing, also behind the block.

    Raises KeyboardInterrupt where the block ends as if there had been no signal. Where there was none, all is then as
    it was before.
    """
    heard = False

    def hear(_number: int, _frame: FrameType | None) -> None:
        nonlocal heard
        if not heard:
            heard = True
            hear_no_more()
            act()

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield
    finally:
        if not heard:
            for number, handler in before.items():
                signal.signal(number, handler)
    if heard:
        raise KeyboardInterrupt


class _Cancelling:
    """Cancels a task, also one that is yet to start."""

    def __init__(self) -> None:
        self._told = False
        self._task: asyncio.Task[Any] | None = None

    def __call__(self) -> None:
        self._told = True
        if self._task is not None and not self._task.done():  # else its loop may be closed
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        import asyncio

        task = asyncio.ensure_future(work)
        self._task = task
        if self._told:
            task.cancel()
        return await task


def run_until_told(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in a loop of its own. The first signal cancels the work, and is a KeyboardInterrupt when it has
    tidied up."""
    import asyncio

    cancelling = _Cancelling()
    with heard_once(cancelling):
        try:
            return asyncio.run(cancelling.run(work))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


def wait_until_told(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command and return its exit code. The first signal is a SIGTERM for it, and a KeyboardInterrupt when it has
    ended and with it all that it started. It has a session of its own, so that Ctrl-C reaches this process alone."""
    import subprocess

    with heard_once(_interrupt):
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_GRACE_S)
            with suppress(ProcessLookupError):  # as a rule it has left nothing, but a JVM that is just starting stays
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise


def _interrupt() -> None:
    raise KeyboardInterrupt
