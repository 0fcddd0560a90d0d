"""Break each promise of the program by hand and see that a test notices: `python -m tests.campaigns.mutants`.

`--only TEXT` takes the mutants whose names hold it. First the tests that are named must pass without any mutant. Prints
the mutants that no test has found and ends with 1 where there are any; with 2 where the list is wrong.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING

from tests.campaigns.mutants.mutant import MistakeInList, Mutant, listed
from tests.campaigns.mutants.tree import Outcome, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("analysis", "brokers", "coordinators", "workloads", "tests")
# What takes so long hangs, and has noticed the mutant.
TESTS_S_MAX = 600.0
INTERRUPTED = 130

Tell = Callable[[str], None]


class Campaign:
    """The mutants, each in one of several trees. Leaves nothing behind in `folder`'s processes, however it ends."""

    def __init__(self, source: Path, folder: Path, processes: int, packages: Sequence[str], tell: Tell) -> None:
        self._trees = [Tree(source, folder / str(number)) for number in range(processes)]
        self._packages = packages
        self._tell = tell
        self._free: SimpleQueue[Tree] = SimpleQueue()
        for tree in self._trees:
            self._free.put(tree)

    def run(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """The survivors. Raises `MistakeInList`."""
        try:
            with ThreadPoolExecutor(len(self._trees)) as pool, self._stopping():
                self._check(pool, sorted({test for mutant in mutants for test in mutant.tests}))
                return self._survivors(pool, mutants)
        finally:
            self._stop()

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Before the pool waits for what is under way, where something went wrong."""
        try:
            yield
        except BaseException:
            self._stop()
            raise

    def _stop(self) -> None:
        for tree in self._trees:
            tree.stop()

    def _check(self, pool: ThreadPoolExecutor, tests: Sequence[str]) -> None:
        """See that the tests test the copies, and pass there."""
        self._tell(f"{len(tests)} files and tests are named; first they run without a mutant")
        parts = [tests[number :: len(self._trees)] for number in range(len(self._trees))]
        work = [pool.submit(self._pass, tree, part) for tree, part in zip(self._trees, parts, strict=True)]
        for done in as_completed(work):
            done.result()

    def _pass(self, tree: Tree, tests: Sequence[str]) -> None:
        tree.check(self._packages)
        if tests and not (outcome := tree.test(tests, 4 * TESTS_S_MAX)).passed:
            raise MistakeInList(f"{outcome.failed} fails without any mutant:\n{outcome.said}")

    def _survivors(self, pool: ThreadPoolExecutor, mutants: Sequence[Mutant]) -> list[Mutant]:
        begin, survivors = monotonic(), []
        work = {pool.submit(self._outcome, mutant): mutant for mutant in mutants}
        for number, done in enumerate(as_completed(work), start=1):
            mutant, outcome = work[done], done.result()
            if outcome.passed:
                survivors.append(mutant)
            fate = "SURVIVED" if outcome.passed else f"found by {outcome.failed}"
            left_s = (monotonic() - begin) / number * (len(mutants) - number)
            self._tell(
                f"{number}/{len(mutants)}  {mutant.name}  {fate}  "
                f"({outcome.seconds:.1f} s; about {left_s / 60:.0f} min {left_s % 60:.0f} s left)"
            )
        return [mutant for mutant in mutants if mutant in survivors]

    def _outcome(self, mutant: Mutant) -> Outcome:
        tree = self._free.get()
        try:
            with tree.mutated(mutant):
                return tree.test(mutant.tests, TESTS_S_MAX)
        finally:
            self._free.put(tree)


def _described(mutant: Mutant) -> str:
    return (
        f"SURVIVED {mutant.name}: {mutant.breaks}\n  {mutant.file}\n    - {mutant.find.strip()}\n"
        f"    + {mutant.put.strip()}\n  and these pass: {' '.join(mutant.tests)}"
    )


def campaign(source: Path, mutants: Sequence[Mutant], processes: int, packages: Sequence[str], tell: Tell) -> int:
    """The exit code. Raises `MistakeInList`."""
    begin = monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        survivors = Campaign(source, Path(folder), processes, packages, tell).run(mutants)
    for mutant in survivors:
        tell(_described(mutant))
    found = len(mutants) - len(survivors)
    tell(f"{len(mutants)} mutants, {found} found, {len(survivors)} survived, in {monotonic() - begin:.0f} s")
    return 1 if survivors else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.mutants", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="the mutants whose names hold it")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    mutants = [mutant for mutant in listed() if options.only in mutant.name]
    try:
        if not mutants:
            raise MistakeInList(f"no mutant's name holds {options.only!r}")
        return campaign(ROOT, mutants, options.processes, PACKAGES, lambda line: print(line, flush=True))
    except MistakeInList as mistake:
        print(mistake, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; nothing is left behind", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
