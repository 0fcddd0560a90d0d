"""Every message of every served version, against itself and against kafka-python's independent codec."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from brokers.wire.apis.table import SERVED, Api
from brokers.wire.errors import Malformed
from brokers.wire.schema import decode, encode
from tests.property.brokers.wire.messages import as_tuple, messages
from tests.property.brokers.wire.reference import theirs

CASES = [
    pytest.param(api, message, version, id=f"{message.__name__}-{version}")
    for api in SERVED.values()
    for message in (api.request, api.response)
    if message is not None
    for version in range(api.version_min, api.version_max + 1)
]
quick = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(("api", "message", "version"), CASES)
@quick
@given(data=st.data())
def test_bytes_are_those_of_kafka_python(api: Api, message: type, version: int, data: st.DataObject) -> None:
    value = data.draw(messages(message, version))
    assume(version > 0 or getattr(value, "topics", ()) is not None)  # kafka-python writes null as empty there
    reference = theirs(message.__name__)(*as_tuple(value, version), version=version)
    assert encode(value, version, flexible=api.flexible(version)) == bytes(reference.encode())


@pytest.mark.parametrize(("api", "message", "version"), CASES)
@quick
@given(data=st.data())
def test_what_is_written_reads_back(api: Api, message: type, version: int, data: st.DataObject) -> None:
    value = data.draw(messages(message, version))
    raw = encode(value, version, flexible=api.flexible(version))
    assert decode(message, version, raw, flexible=api.flexible(version)) == value


@pytest.mark.parametrize(("api", "message", "version"), CASES)
@quick
@given(data=st.data())
def test_every_cut_is_malformed(api: Api, message: type, version: int, data: st.DataObject) -> None:
    raw = encode(data.draw(messages(message, version)), version, flexible=api.flexible(version))
    if raw:
        with pytest.raises(Malformed):
            decode(message, version, raw[: data.draw(st.integers(0, len(raw) - 1))], flexible=api.flexible(version))


@pytest.mark.parametrize(("api", "message", "version"), CASES)
@quick
@given(raw=st.binary(max_size=64))
def test_garbage_is_malformed_or_a_message(api: Api, message: type, version: int, raw: bytes) -> None:
    try:
        value: Any = decode(message, version, raw, flexible=api.flexible(version))
    except Malformed:
        return
    assert isinstance(value, message)
