"""A broker that is killed within a deletion: `python -m tests.integration.processes.dying_broker CALL CONFIG`.

It ends as by kill -9, before the system call of this number that the deletion of a topic's logs makes, from 0.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from brokers.__main__ import main
from brokers.log.files import OsFiles
from brokers.replication.partition_folders import DELETED_FOLDER

CALLS = ("make_directory", "list_names", "rename", "open_directory", "fsync", "remove_directory", "unlink")


def put_in(dies_at: int) -> None:
    seen = 0
    begun = False

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counts(*arguments: Any) -> Any:
            nonlocal seen, begun
            begun = begun or (call is make_directory and arguments[0].name == DELETED_FOLDER)
            if begun and seen == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += begun
            return call(*arguments)

        return counts

    make_directory = OsFiles.make_directory
    for name in CALLS:
        setattr(OsFiles, name, staticmethod(counted(getattr(OsFiles, name))))


if __name__ == "__main__":
    put_in(int(sys.argv.pop(1)))
    sys.exit(main())
