"""The lease, which decides alone."""

from __future__ import annotations

from math import inf

import pytest

from coordinators.zookeeper.session import LEASE_SHARE, Lease

TIMEOUT_MS = 6_000
LASTS_S = 6 * LEASE_SHARE


@pytest.fixture
def lease() -> Lease:
    """One that was confirmed after an answer to what was sent at 10."""
    made = Lease(TIMEOUT_MS)
    made.heard(10.0)
    made.confirm()
    return made


def test_it_is_over_until_it_is_confirmed_however_much_was_heard() -> None:
    lease = Lease(TIMEOUT_MS)
    lease.heard(10.0)
    assert lease.ends == -inf


def test_it_counts_from_the_latest_sending_of_what_was_answered(lease: Lease) -> None:
    assert lease.ends == 10.0 + LASTS_S
    lease.heard(12.0)
    lease.heard(11.0)
    assert lease.ends == 12.0 + LASTS_S


def test_a_new_session_has_none_by_what_the_former_heard(lease: Lease) -> None:
    lease.begin()
    assert lease.ends == -inf
    lease.confirm()
    assert lease.ends == -inf, "nothing has been heard in it"


def test_in_doubt_it_is_over_and_answers_of_before_are_worth_nothing(lease: Lease) -> None:
    before = lease.tenure
    lease.doubt()
    assert lease.ends == -inf
    assert lease.tenure > before


def test_it_goes_by_what_the_server_grants(lease: Lease) -> None:
    lease.grant(TIMEOUT_MS // 2)
    assert lease.ends == 10.0 + LASTS_S / 2


def test_it_wants_to_be_renewed_some_times_in_a_timeout(lease: Lease) -> None:
    assert not lease.wants_renewal(10.9)
    assert lease.wants_renewal(11.0)
