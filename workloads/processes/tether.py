"""Start a command that dies with its owner: `python tether.py OWNER_PID COMMAND...` becomes COMMAND.

The kernel is asked to kill this process when its parent goes, however it goes, kill -9 included; the wish survives
exec. Nor does this process interrupt others when it wakes: it waits until one of them pauses (docs/decisions, 0019).
Run as a file of its own with nothing imported but what that takes, because each start costs its import time.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    owner, command = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != owner:  # it went before the wish was made
        sys.exit("the owner is gone")
    if os.sched_getscheduler(0) == os.SCHED_OTHER:  # else somebody has chosen
        try:  # noqa: SIM105 - an import more for each start
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        except OSError:  # a sandbox may forbid it, to all processes alike
            pass
    try:
        os.execvp(command[0], command)  # noqa: S606 - becoming the command is what this is for
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
