"""The four codecs of Kafka's record batches, with a hard bound on what a batch may unpack to.

Kafka's snappy comes raw (librdkafka) or in the xerial stream of blocks (Java); lz4 is the frame format. Pure.
"""

import struct
from enum import IntEnum
from typing import Final

import cramjam

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_BLOCK_LENGTH: Final = struct.Struct(">I")
_FIRST_TRY_FACTOR: Final = 8
_FIRST_TRY_BYTES_MIN: Final = 64 * 1024

Body = bytes | bytearray | memoryview


class Codec(IntEnum):
    """Compression types by their number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionRefused(ValueError):
    """Bytes that do not unpack, or that would unpack to more than the bound; definite."""


def compress(codec: Codec, body: bytearray) -> Body:
    """The body as `codec` packs it, snappy without framing."""
    if codec is Codec.NONE:
        return body
    if codec is Codec.GZIP:
        return bytes(cramjam.gzip.compress(body))
    if codec is Codec.SNAPPY:
        return bytes(cramjam.snappy.compress_raw(body))
    if codec is Codec.LZ4:
        return bytes(cramjam.lz4.compress(body))
    return bytes(cramjam.zstd.compress(body))


def decompress(codec: int, body: memoryview, bytes_max: int) -> bytes | memoryview:
    """The body unpacked; CompressionRefused when it is damaged, unknown or larger than `bytes_max`."""
    if codec == Codec.NONE:
        return body
    if codec == Codec.SNAPPY:
        return _unsnappy(bytes(body), bytes_max)
    if not 0 <= codec < len(Codec):
        raise CompressionRefused(f"compression type {codec} is unknown")
    return _unpack_within(Codec(codec), bytes(body), bytes_max)


def _unpack_within(codec: Codec, body: bytes, bytes_max: int) -> bytes | memoryview:
    """Unpack into a buffer that grows to the bound and never past it: these formats need not tell their size."""
    capacity = max(_FIRST_TRY_BYTES_MIN, _FIRST_TRY_FACTOR * len(body))
    while True:
        capacity = min(capacity, bytes_max)
        output = bytearray(capacity)
        try:
            return memoryview(output)[: _decompress_into(codec, body, output)]
        except cramjam.DecompressionError as error:
            if capacity == bytes_max:
                raise CompressionRefused(
                    f"{codec.name.lower()}: damaged, or over {bytes_max} bytes: {error}"
                ) from error
        capacity *= _FIRST_TRY_FACTOR


def _decompress_into(codec: Codec, body: bytes, output: bytearray) -> int:
    if codec is Codec.GZIP:
        return cramjam.gzip.decompress_into(body, output)
    if codec is Codec.LZ4:
        return cramjam.lz4.decompress_into(body, output)
    return cramjam.zstd.decompress_into(body, output)


def _unsnappy(body: bytes, bytes_max: int) -> bytes:
    if not body.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(body, bytes_max)
    output = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(body):
        if position + _BLOCK_LENGTH.size > len(body):
            raise CompressionRefused("snappy: the stream ends inside a block's length")
        (length,) = _BLOCK_LENGTH.unpack_from(body, position)
        position += _BLOCK_LENGTH.size
        if position + length > len(body):
            raise CompressionRefused(f"snappy: a block of {length} bytes where {len(body) - position} are left")
        output += _unsnappy_block(body[position : position + length], bytes_max - len(output))
        position += length
    return bytes(output)


def _unsnappy_block(block: bytes, bytes_max: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > bytes_max:
            raise CompressionRefused(f"snappy: would unpack to {size} bytes, over the bound")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CompressionRefused(f"snappy: {error}") from error
