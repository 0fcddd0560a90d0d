"""A system outside the product, and its row, which a file names as `system: tests.toys.wrapped.system:WRAPPED`."""

from __future__ import annotations

import sys
from typing import Final

from workloads.systems.architectures import Row
from workloads.systems.brokerlab import Brokerlab


class Wrapped(Brokerlab):
    broker = (sys.executable, "-m", "tests.toys.wrapped.broker")


WRAPPED: Final = Row("wrapped", system="tests.toys.wrapped.system:Wrapped", coordinator="static")
