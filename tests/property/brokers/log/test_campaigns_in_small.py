"""A few rounds of each campaign; `python -m tests.campaigns.log_kills` and `log_corruptions` run them at length."""

import random

from tests.campaigns import log_corruptions, log_kills


def test_thirty_kills_lose_nothing_that_was_acknowledged() -> None:
    log_kills.campaign(kills=30, seed=random.randrange(1 << 30))


def test_three_hundred_corruptions_never_serve_a_wrong_byte() -> None:
    first = random.randrange(1 << 30)
    for seed in range(first, first + 300):
        try:
            log_corruptions.run(seed)
        except Exception as error:
            error.add_note(f"python -m tests.campaigns.log_corruptions --count 1 --seed {seed}")
            raise
