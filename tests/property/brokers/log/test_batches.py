"""Batches of any records come back, and no change to one is taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.wire.batch import BatchError, Record, RecordToSend, check_produced, decode_records, encode_batch
from brokers.wire.compression import Codec

BYTES_MAX = 1 << 20
optional_bytes = st.none() | st.binary(max_size=50)
headers = st.lists(st.tuples(st.text(max_size=10), optional_bytes), max_size=3).map(tuple)
records = st.builds(
    RecordToSend, value=optional_bytes, key=optional_bytes, headers=headers, timestamp=st.integers(-1, 2**62)
)


@given(st.lists(records, min_size=1, max_size=20), st.sampled_from(Codec), st.integers(0, 2**62))
def test_any_records_come_back(sent: list[RecordToSend], codec: Codec, base_offset: int) -> None:
    batch = encode_batch(sent, codec=codec, base_offset=base_offset)
    assert check_produced(batch, BYTES_MAX).size == len(batch)
    assert decode_records(batch) == [
        Record(base_offset + number, record.timestamp, record.key, record.value, record.headers)
        for number, record in enumerate(sent)
    ]


@given(st.lists(records, min_size=1, max_size=5), st.data())
def test_no_changed_byte_behind_the_crc_field_is_taken(sent: list[RecordToSend], data: st.DataObject) -> None:
    batch = encode_batch(sent)
    position = data.draw(st.integers(17, len(batch) - 1))
    batch[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BatchError):
        check_produced(batch, BYTES_MAX)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused_and_nothing_worse(noise: bytes) -> None:
    with pytest.raises(BatchError):
        check_produced(noise, BYTES_MAX)


@given(st.lists(records, min_size=1, max_size=5), st.sampled_from(Codec), st.data())
def test_damaged_records_are_refused_and_nothing_worse(
    sent: list[RecordToSend], codec: Codec, data: st.DataObject
) -> None:
    batch = encode_batch(sent, codec=codec)
    batch[data.draw(st.integers(57, len(batch) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        decode_records(batch, decompressed_bytes_max=100_000)
    except BatchError:
        return
