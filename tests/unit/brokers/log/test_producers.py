"""De-duplication of idempotent producers, as KIP-98 wants it."""

import pytest

from brokers.log.errors import ProducerFenced, SequenceOutOfOrder
from brokers.log.producers import Producers, decode_producers
from brokers.wire.batch import BatchHeader
from tests.unit.brokers.log.batches import batch

LAST_SEQUENCE = 2**31 - 1


def header(sequence: int, records: int = 1, epoch: int = 0, producer_id: int = 1) -> BatchHeader:
    return batch(*[b"v"] * records, producer=(producer_id, epoch, sequence))[1]


def written(*headers: BatchHeader, producers_max: int = 100) -> Producers:
    """Producers that wrote these, at offsets 10, 11, ..."""
    producers = Producers(producers_max)
    for number, each in enumerate(headers):
        assert producers.duplicate_of(each) is None
        producers.note(each, 10 + number)
    return producers


def test_each_of_the_last_five_batches_is_known_again() -> None:
    producers = written(*(header(number) for number in range(7)))
    assert [producers.duplicate_of(header(number)) for number in range(2, 7)] == [12, 13, 14, 15, 16]


def test_an_older_batch_than_the_last_five_is_out_of_order() -> None:
    producers = written(*(header(number) for number in range(7)))
    with pytest.raises(SequenceOutOfOrder, match="sent sequence 1, 7 is next"):
        producers.duplicate_of(header(1))


def test_a_gap_is_out_of_order_and_the_next_sequence_is_not() -> None:
    producers = written(header(0, records=3))
    with pytest.raises(SequenceOutOfOrder):
        producers.duplicate_of(header(4))
    assert producers.duplicate_of(header(3)) is None


def test_the_same_first_sequence_with_another_count_is_no_duplicate() -> None:
    producers = written(header(0, records=3))
    with pytest.raises(SequenceOutOfOrder):
        producers.duplicate_of(header(0, records=2))


def test_an_older_epoch_is_fenced() -> None:
    producers = written(header(0, epoch=2))
    with pytest.raises(ProducerFenced) as fenced:
        producers.duplicate_of(header(1, epoch=1))
    assert fenced.value.kafka_error == "INVALID_PRODUCER_EPOCH"


def test_a_newer_epoch_starts_at_sequence_zero_and_forgets_the_older_batches() -> None:
    producers = written(header(0), header(1), header(0, epoch=1))
    with pytest.raises(SequenceOutOfOrder):
        written(header(0)).duplicate_of(header(1, epoch=1))
    assert producers.duplicate_of(header(0, epoch=1)) == 12
    with pytest.raises(SequenceOutOfOrder):
        producers.duplicate_of(header(2, epoch=1))


def test_an_unknown_producer_may_start_anywhere() -> None:
    assert Producers(10).duplicate_of(header(1234)) is None


def test_sequences_wrap_to_zero_behind_the_last_one() -> None:
    producers = written(header(LAST_SEQUENCE - 1), header(LAST_SEQUENCE), header(0), header(1))
    assert producers.duplicate_of(header(LAST_SEQUENCE)) == 11
    assert producers.duplicate_of(header(2)) is None


def test_a_batch_may_wrap_inside() -> None:
    producers = written(header(LAST_SEQUENCE, records=3))
    assert producers.duplicate_of(header(LAST_SEQUENCE, records=3)) == 10
    assert producers.duplicate_of(header(2)) is None


def test_beyond_the_bound_the_producer_that_wrote_longest_ago_is_forgotten() -> None:
    producers = written(*(header(0, producer_id=number) for number in (1, 2, 3)), producers_max=3)
    producers.note(header(1, producer_id=1), 20)
    producers.note(header(0, producer_id=4), 21)
    assert len(producers) == 3
    assert producers.duplicate_of(header(7, producer_id=2)) is None
    assert producers.duplicate_of(header(0, producer_id=1)) == 10


def test_a_producer_that_stopped_writing_is_forgotten_in_time() -> None:
    producers = written(header(0, producer_id=1))
    producers.expire(now_ms=500, unused_ms_max=1000)
    producers.note(header(0, producer_id=2), 20)
    producers.expire(now_ms=1400, unused_ms_max=1000)
    assert len(producers) == 1
    producers.expire(now_ms=1501, unused_ms_max=1000)
    assert len(producers) == 0


def test_a_snapshot_comes_back_or_not_at_all() -> None:
    producers = written(header(0), header(0, producer_id=2, epoch=3), header(1))
    stored = producers.encode(55)
    assert decode_producers(stored, 55, 100) == producers
    assert decode_producers(stored, 54, 100) is None
    for position in range(len(stored)):
        changed = bytearray(stored)
        changed[position] ^= 1
        assert decode_producers(bytes(changed), 55, 100) is None
        assert decode_producers(stored[:position], 55, 100) is None
