"""Record batches: what is taken, what is refused and by which name, and that records survive the trip."""

import struct

import cramjam
import pytest
from crc32c import crc32c

from brokers.wire.batch import (
    HEADER_BYTES,
    BatchCodecUnknown,
    BatchCrcMismatch,
    BatchCutShort,
    BatchError,
    BatchInvalid,
    BatchMagicUnsupported,
    BatchTooLarge,
    BatchTransactional,
    Record,
    RecordToSend,
    check_produced,
    decode_records,
    encode_batch,
)
from brokers.wire.compression import Codec, CompressionRefused, decompress
from brokers.wire.primitives import append_signed, append_unsigned, read_signed, read_unsigned
from tests.unit.brokers.wire.nonsense import record, signed

BYTES_MAX = 1 << 20
RECORDS = [
    RecordToSend(b"first", key=b"k", headers=(("h", b"1"), ("n", None)), timestamp=1_000),
    RecordToSend(None, timestamp=999),
    RecordToSend(b"", key=b"", timestamp=1_500),
]


def with_field(batch: bytearray, form: str, position: int, value: int, *, sign: bool = True) -> bytearray:
    """The batch with one header field changed, signed again unless told not to."""
    changed = bytearray(batch)
    struct.pack_into(form, changed, position, value)
    if sign:
        struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return changed


@pytest.mark.parametrize("codec", Codec)
def test_records_come_back_as_they_went_in_under_every_codec(codec: Codec) -> None:
    batch = encode_batch(RECORDS, codec=codec, base_offset=40)
    assert decode_records(batch) == [
        Record(40 + number, record.timestamp, record.key, record.value, record.headers)
        for number, record in enumerate(RECORDS)
    ]


def test_the_header_says_what_the_batch_holds() -> None:
    header = check_produced(encode_batch(RECORDS, producer=(5, 1, 7)), BYTES_MAX)
    assert (header.records_count, header.last_offset_delta, header.max_timestamp) == (3, 2, 1_500)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 7)


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = with_field(encode_batch(RECORDS), ">h", 21, 0x08)
    assert {record.timestamp for record in decode_records(batch)} == {1_500}


@pytest.mark.parametrize(
    ("form", "position", "value", "error", "kafka_error"),
    [
        (">b", 16, 1, BatchMagicUnsupported, "UNSUPPORTED_FOR_MESSAGE_FORMAT"),
        (">b", 16, 3, BatchMagicUnsupported, "UNSUPPORTED_FOR_MESSAGE_FORMAT"),
        (">i", 8, 10, BatchCutShort, "CORRUPT_MESSAGE"),
        (">i", 8, -1, BatchCutShort, "CORRUPT_MESSAGE"),
        (">i", 8, 2**31 - 1, BatchCutShort, "CORRUPT_MESSAGE"),
        (">h", 21, 5, BatchCodecUnknown, "UNSUPPORTED_COMPRESSION_TYPE"),
        (">h", 21, 0x20, BatchInvalid, "INVALID_RECORD"),
        (">h", 21, 0x10, BatchTransactional, "INVALID_TXN_STATE"),
        (">i", 23, 1, BatchInvalid, "INVALID_RECORD"),
        (">i", 23, -1, BatchInvalid, "INVALID_RECORD"),
        (">i", 57, 0, BatchInvalid, "INVALID_RECORD"),
        (">i", 57, -3, BatchInvalid, "INVALID_RECORD"),
        (">q", 43, -2, BatchInvalid, "INVALID_RECORD"),
        (">q", 43, 5, BatchInvalid, "INVALID_RECORD"),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_its_name(
    form: str, position: int, value: int, error: type[BatchError], kafka_error: str
) -> None:
    with pytest.raises(error) as refusal:
        check_produced(with_field(encode_batch(RECORDS), form, position, value), BYTES_MAX)
    assert refusal.value.kafka_error == kafka_error


def test_more_records_than_can_fit_are_refused() -> None:
    batch = with_field(encode_batch(RECORDS), ">i", 57, 1_000_000, sign=False)
    with pytest.raises(BatchInvalid):
        check_produced(with_field(batch, ">i", 23, 999_999), BYTES_MAX)


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_anywhere_in_the_signed_part_is_noticed(bit: int) -> None:
    batch = encode_batch(RECORDS)
    for position in range(17, len(batch)):
        changed = bytearray(batch)
        changed[position] ^= 1 << bit
        with pytest.raises(BatchCrcMismatch):
            check_produced(changed, BYTES_MAX)


def test_a_batch_cut_at_any_byte_or_followed_by_another_is_refused() -> None:
    batch = encode_batch(RECORDS)
    for size in range(len(batch)):
        with pytest.raises(BatchCutShort):
            check_produced(batch[:size], BYTES_MAX)
    with pytest.raises(BatchCutShort):
        check_produced(batch + batch, BYTES_MAX)


def test_a_batch_above_the_bound_is_too_large_and_one_at_it_is_not() -> None:
    batch = encode_batch(RECORDS)
    check_produced(batch, len(batch))
    with pytest.raises(BatchTooLarge):
        check_produced(batch, len(batch) - 1)


def test_a_batch_without_records_cannot_be_made() -> None:
    with pytest.raises(BatchInvalid):
        encode_batch([])


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_decompression_bomb_is_refused(codec: Codec) -> None:
    batch = encode_batch([RecordToSend(bytes(4_000_000))], codec=codec)
    with pytest.raises(BatchInvalid):
        decode_records(batch, decompressed_bytes_max=1_000_000)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_damaged_compressed_body_is_refused(codec: Codec) -> None:
    batch = encode_batch([RecordToSend(bytes(range(256)) * 40)], codec=codec)
    for cut in (HEADER_BYTES, HEADER_BYTES + 1, len(batch) - 1):
        changed = with_field(batch[:cut], ">i", 8, cut - 12)
        with pytest.raises(BatchInvalid):
            decode_records(changed, decompressed_bytes_max=100_000)


def test_records_that_contradict_the_header_are_refused() -> None:
    batch = encode_batch(RECORDS)
    for count in (2, 4):
        with pytest.raises(BatchInvalid):
            decode_records(with_field(batch, ">i", 57, count))
    for position in range(HEADER_BYTES, len(batch)):
        changed = bytearray(batch)
        changed[position] = 0xFF
        try:
            decode_records(changed)
        except BatchInvalid:
            continue


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (signed(record(timestamp_delta=1), timestamp=2**63 - 1), "the timestamp 9223372036854775808"),
        (signed(record(timestamp_delta=-1), timestamp=-(2**63)), "leaves 64 bits"),
        (signed(record(timestamp_delta=2**64)), "leaves 64 bits"),
        (signed(record() + record(offset_delta=1), 2, base_offset=2**63 - 1), "offsets of 2 records leave 64 bits"),
        (signed(record(offset_delta=2**63 - 1)), "record 0 has an offset delta of 9223372036854775807"),
        (signed(record(offset_delta=-1)), "record 0 has an offset delta of -1"),
        (signed(record() + record(), 2), "record 1 has an offset delta of 0"),
    ],
)
def test_a_time_or_offset_that_cannot_be_is_refused_like_other_nonsense(batch: bytearray, words: str) -> None:
    check_produced(batch, BYTES_MAX)
    with pytest.raises(BatchInvalid, match=words):
        decode_records(batch)


def test_the_first_and_the_last_of_times_and_the_last_of_offsets_are_read() -> None:
    for timestamp in (-(2**63), 2**63 - 1):
        (found,) = decode_records(signed(record(), base_offset=2**63 - 1, timestamp=timestamp))
        assert (found.offset, found.timestamp) == (2**63 - 1, timestamp)


def test_snappy_in_xerial_framing_is_understood_and_bounded() -> None:
    body = b"as the Java client sends it " * 50
    block = bytes(cramjam.snappy.compress_raw(body))
    framed = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + (struct.pack(">I", len(block)) + block) * 2
    assert decompress(Codec.SNAPPY, memoryview(framed), 10_000) == body * 2
    for damaged, bound in ((framed, len(body)), (framed[:-1], 10_000), (framed + b"\0", 10_000)):
        with pytest.raises(CompressionRefused):
            decompress(Codec.SNAPPY, memoryview(damaged), bound)


def test_an_unknown_codec_does_not_unpack() -> None:
    with pytest.raises(CompressionRefused):
        decompress(6, memoryview(b""), 10)


@pytest.mark.parametrize("value", [0, 1, -1, 63, -64, 64, 300, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_signed_numbers_come_back(value: int) -> None:
    output = bytearray()
    append_signed(output, value)
    assert read_signed(output, 0) == (value, len(output))


def test_an_overlong_or_cut_number_is_refused() -> None:
    with pytest.raises(ValueError, match="cut short or longer"):
        read_unsigned(b"\x80" * 5 + b"\x01", 0)
    with pytest.raises(ValueError, match="cut short or longer"):
        read_unsigned(b"\x80", 0)
    output = bytearray()
    append_unsigned(output, 2**32 - 1)
    assert read_unsigned(output, 0) == (2**32 - 1, 5)
