"""A broker whose disk is slow: `python -m tests.integration.processes.slow_broker SETTINGS CONFIG`.

Settings, as JSON: `fsync_s`, what each sync of a folder or of a small file takes; `held`, a file during whose presence
no sync of a segment ends; `maintenance_s`, the pause between two rounds of maintenance.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import brokers.broker
from brokers.__main__ import main
from brokers.log.files import OsFiles

POLL_S = 0.01


def put_in(fsync_s: float = 0.0, held: str = "", maintenance_s: float = brokers.broker.MAINTENANCE_S) -> None:
    def fsync(handle: int) -> None:
        time.sleep(fsync_s)
        os.fsync(handle)

    def fdatasync(handle: int) -> None:
        """That it waits is said by a file beside the other."""
        while held and Path(held).exists():
            Path(f"{held}.waits").touch()
            time.sleep(POLL_S)
        os.fdatasync(handle)

    changes: dict[str, Any] = {"fsync": fsync, "fdatasync": fdatasync}
    for name, call in changes.items():
        setattr(OsFiles, name, staticmethod(call))
    setattr(brokers.broker, "MAINTENANCE_S", maintenance_s)  # noqa: B010 - a constant to the type checker


if __name__ == "__main__":
    put_in(**json.loads(sys.argv.pop(1)))
    sys.exit(main())
