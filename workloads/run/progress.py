"""How a run shows where it is: a live line on a terminal, a plain line per trial elsewhere."""

from __future__ import annotations

import sys
from statistics import fmean
from time import monotonic
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from workloads.spec.plan import Plan, Visit
    from workloads.trial.record import TrialRecord


class Progress(Protocol):
    def begin(self, plan: Plan, done: int) -> None:
        """A run begins; `done` of its trials were finished by an earlier one."""

    def grows(self, trials: int) -> None:
        """So many trials are run beside those that were sure."""

    def visit_begins(self, visit: Visit) -> None:
        """A cell is measured on all architectures."""

    def trial_ends(self, record: TrialRecord) -> None: ...

    def end(self) -> None:
        """The run is over, finished or not. Safe to call before `begin`."""


class Pace:
    """Trials done and left, and the time that the rest will take at the pace so far."""

    def __init__(self, plan: Plan, done: int) -> None:
        self.total = len(plan.sure_trials)
        self.done = min(done, self.total)
        self._done_before = self.done
        self._started = monotonic()

    def count(self) -> None:
        self.done = min(self.done + 1, self.total)

    def left_s(self) -> float | None:
        """Seconds left, or None before the first trial of this run is over."""
        here = self.done - self._done_before
        return (monotonic() - self._started) / here * (self.total - self.done) if here else None


class PlainProgress:
    """One line a trial, for logs and pipes."""

    def begin(self, plan: Plan, done: int) -> None:
        self._pace = Pace(plan, done)
        if done:
            print(f"going on: {done} of {self._pace.total} trials are done", flush=True)

    def grows(self, trials: int) -> None:
        self._pace.total += trials

    def visit_begins(self, visit: Visit) -> None:
        """Said when its trials end."""

    def trial_ends(self, record: TrialRecord) -> None:
        self._pace.count()
        left = self._pace.left_s()
        about = "" if left is None else f", {duration(left)} left"
        print(f"[{self._pace.done}/{self._pace.total}{about}] {describe(record)}", flush=True)

    def end(self) -> None:
        """Nothing to clear."""


class LiveProgress:
    """A line that stays at the foot of the terminal; what fails or does not balance is printed above it."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None

    def begin(self, plan: Plan, done: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
        self._bar = Progress(*columns, TextColumn("{task.description}"), transient=True)
        self._pace = Pace(plan, done)
        self._task = self._bar.add_task("starting", total=self._pace.total, completed=self._pace.done, left="")
        self._bar.start()

    def grows(self, trials: int) -> None:
        assert self._bar is not None, "a run begins before it grows"
        self._pace.total += trials
        self._bar.update(self._task, total=self._pace.total)

    def visit_begins(self, visit: Visit) -> None:
        assert self._bar is not None, "a run begins before its trials"
        self._bar.update(self._task, description=visit.cell.id)

    def trial_ends(self, record: TrialRecord) -> None:
        assert self._bar is not None, "a run begins before its trials"
        self._pace.count()
        left = self._pace.left_s()
        about = "" if left is None else f"{duration(left)} left"
        line = describe(record)
        self._bar.update(self._task, completed=self._pace.done, left=about, description=line)
        if record.reason:
            self._bar.console.print(line, markup=False, highlight=False)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def describe(record: TrialRecord) -> str:
    if record.reason:
        return f"{record.trial.id}: {record.verdict.upper()}: {record.reason}"
    produced, consumed = (fmean(record.rates.get(role, [0.0])) for role in ("producer", "consumer"))
    return f"{record.trial.id}: {produced:,.0f}/s produced, {consumed:,.0f}/s consumed"


def duration(seconds: float) -> str:
    """Seconds as a person says them: 42 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def progress_for(stream: object = sys.stdout) -> Progress:
    return LiveProgress() if getattr(stream, "isatty", lambda: False)() else PlainProgress()
