"""Variable-length integers, signed ones zigzag-coded, as Kafka's records hold them.

Every read is bounded: five bytes for 32 bits, ten for 64; a longer run raises ValueError instead of being followed.
"""

INT32_BYTES_MAX = 5
INT64_BYTES_MAX = 10


def append_unsigned(output: bytearray, value: int) -> None:
    """Append `value` (zero or more), seven bits a byte, the lowest first."""
    while value > 0x7F:
        output.append(value & 0x7F | 0x80)
        value >>= 7
    output.append(value)


def append_signed(output: bytearray, value: int) -> None:
    """Append a signed 64-bit `value`, zigzag-coded so that small negative numbers stay short."""
    append_unsigned(output, value << 1 if value >= 0 else (-value << 1) - 1)


def read_unsigned(
    data: bytes | bytearray | memoryview, position: int, bytes_max: int = INT32_BYTES_MAX
) -> tuple[int, int]:
    """The number at `position` and the position behind it; ValueError when it is cut short or too long."""
    value = shift = 0
    for at in range(position, min(position + bytes_max, len(data))):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
    raise ValueError(f"the number at byte {position} is cut short or longer than {bytes_max} bytes")


def read_signed(
    data: bytes | bytearray | memoryview, position: int, bytes_max: int = INT64_BYTES_MAX
) -> tuple[int, int]:
    """As `read_unsigned`, for a zigzag-coded number."""
    value, position = read_unsigned(data, position, bytes_max)
    return (value >> 1) ^ -(value & 1), position
