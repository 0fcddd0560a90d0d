"""The message classes of kafka-python: an independent codec to compare with.

Importing the library draws deprecation warnings of its own, which are errors in tests: they are silenced here only.
"""

from __future__ import annotations

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol.admin
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer

_MODULES = (kafka.protocol.admin, kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer)


def theirs(name: str) -> Any:
    """Their class for all versions of the message `name`."""
    return next(getattr(module, name) for module in _MODULES if hasattr(module, name))
