"""Its row, which a file of experiments names as `coordinator: tests.toys.oracle.architecture:ORACLE`."""

from __future__ import annotations

from typing import Final

from workloads.spec.keys import Key, whole
from workloads.systems.architectures import Option, Row

ORACLE: Final = Row(
    "oracle",
    coordinator="tests.toys.oracle.coordinator:OracleCoordinator",
    options={"pause_ms": Option(Key(whole(0, 1_000), "0"))},
)
