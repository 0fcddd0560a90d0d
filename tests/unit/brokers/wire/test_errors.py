"""Error numbers are facts of the protocol; kafka-python knows them too."""

from __future__ import annotations

import warnings

import pytest

from brokers.wire.batch import BatchError
from brokers.wire.errors import ErrorCode

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.errors


# kafka-python spells a few in its own way.
RESPELT = {
    ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
}


@pytest.mark.parametrize("code", sorted(set(ErrorCode) - RESPELT), ids=lambda code: code.name)
def test_numbers_and_names_are_those_of_the_protocol(code: ErrorCode) -> None:
    assert kafka.errors.for_code(int(code)).message in {code.name, "UNKNOWN"}


@pytest.mark.parametrize("refusal", [BatchError, *BatchError.__subclasses__()], ids=lambda refusal: refusal.__name__)
def test_every_refusal_of_a_batch_has_a_number(refusal: type[BatchError]) -> None:
    assert ErrorCode[refusal.kafka_error]
