"""Many seeded runs of DSBS clusters: `python -m tests.campaigns.sim --runs 10000 [--first SEED]`.

Each failure is one line with its seed; `--first SEED --runs 1` replays it. Ends with 1 where any run failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from time import monotonic

from tests.simulation.story import Violation, run


def outcome(seed: int) -> str | None:
    """What went wrong, or None. A machine's broken assertion is a violation as well."""
    try:
        run(seed)
    except (Violation, AssertionError) as violated:
        text = str(violated)
        return text if isinstance(violated, Violation) else f"seed {seed}: {text}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.sim", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    begin, failed = monotonic(), 0
    with ProcessPoolExecutor(options.processes) as pool:
        seeds = range(options.first, options.first + options.runs)
        for violated in pool.map(outcome, seeds, chunksize=20):
            if violated is not None:
                failed += 1
                print(violated, flush=True)
    print(f"{options.runs} runs from seed {options.first}, {failed} failed, in {monotonic() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
