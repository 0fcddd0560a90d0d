"""How busy the machine was in a window, and how much of that was not the run's: by hand, beside a real neighbour."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest

from tests.contract.backend import asynchronous
from tests.unit.workloads.measure.working import work, workers
from workloads.measure import machine
from workloads.measure.machine import Load, Machine

TICKS: Final = os.sysconf("SC_CLK_TCK")


class Kernel:
    """A folder with the files of /proc that are read, and a clock."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self.now_s = 100.0
        monkeypatch.setattr(machine, "_PROC", folder)
        monkeypatch.setattr(machine, "monotonic", lambda: self.now_s)

    def says(self, cores: int = 2, **seconds: float) -> None:
        """Processor time since the machine's start, by kind."""
        kinds = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
        assert seconds.keys() <= set(kinds)
        total = " ".join(str(round(seconds.get(kind, 0) * TICKS)) for kind in kinds)
        lines = [
            f"cpu  {total}",
            *(f"cpu{number} 1 2 3 4 5 6 7 8 9 10" for number in range(cores)),
            "intr 5 0",
            "ctxt 7",
        ]
        (self._folder / "stat").write_text("\n".join(lines) + "\n")

    def process(self, pid: int, *, user_s: float, system_s: float, name: str = "python") -> None:
        (self._folder / str(pid)).mkdir(exist_ok=True)
        ahead = f"{pid} ({name}) S 1 1 1 0 -1 4194304 100 0 0 0"
        times = f"{round(user_s * TICKS)} {round(system_s * TICKS)}"
        (self._folder / str(pid) / "stat").write_text(f"{ahead} {times} 77 88 20 0 1 0\n")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def test_a_stretch_by_hand(kernel: Kernel) -> None:
    """Of 2 x 4 s the machine was idle for 3, so 5 were busy: 2 were the run's, 0.5 the kernel's for packets, and 2.5
    somebody else's, among them the half second that another machine took."""
    kernel.says(user=50, system=20, idle=1000, iowait=10, irq=1, softirq=2, steal=5)
    kernel.process(1, user_s=7, system_s=3)
    kernel.process(2, user_s=1, system_s=1)
    found = Machine([1, 2])
    kernel.now_s += 4
    kernel.says(user=53, system=21, idle=1002, iowait=11, irq=1.25, softirq=2.25, steal=5.5)
    kernel.process(1, user_s=8, system_s=3.5)
    kernel.process(2, user_s=1.5, system_s=1)
    assert asdict(found.load()) == {
        "wall_s": 4.0, "cores": 2, "busy_cores": pytest.approx(5 / 4), "stolen_cores": pytest.approx(0.5 / 4),
        "foreign_cores": pytest.approx(2.5 / 4),
    }  # fmt: skip


def test_a_machine_that_works_for_the_run_alone_has_no_foreign_load(kernel: Kernel) -> None:
    """Counters of processes and of the machine are rounded apart, so the difference may come out below nothing."""
    kernel.says(idle=10)
    kernel.process(1, user_s=0, system_s=0)
    found = Machine([1])
    kernel.now_s += 1
    kernel.says(idle=11.1)
    kernel.process(1, user_s=0.9, system_s=0.02)
    assert found.load().foreign_cores == 0


def test_a_process_that_is_gone_or_never_was_costs_nothing(kernel: Kernel) -> None:
    kernel.says(idle=10)
    found = Machine([1, 2])
    kernel.now_s += 1
    kernel.says(idle=11)
    assert found.load().foreign_cores == pytest.approx(1)


def test_a_name_with_blanks_and_brackets_is_not_taken_for_numbers(kernel: Kernel) -> None:
    kernel.says(idle=10)
    kernel.process(1, user_s=1, system_s=1, name="a) b (c) 9 9")
    found = Machine([1])
    kernel.now_s += 1
    kernel.says(idle=11)
    kernel.process(1, user_s=1.5, system_s=1.5, name="a) b (c) 9 9")
    assert found.load().foreign_cores == pytest.approx(0)


@pytest.mark.parametrize(("cores", "foreign", "disturbed"), [(2, 0.1, False), (2, 0.11, True), (64, 3.2, False)])
def test_more_than_a_twentieth_of_the_machine_disturbs(cores: int, foreign: float, disturbed: bool) -> None:
    assert Load(1.0, cores, 1.0, 0.0, foreign).disturbed == disturbed


@asynchronous
async def test_a_neighbours_work_is_foreign_and_the_runs_own_is_not(tmp_path: Path) -> None:
    """The same stretch of time for both: one counts the worker among the run's processes, the other does not."""
    async with workers(tmp_path, "broker-1") as processes:
        worker = processes["broker-1"][1]
        knows, does_not = Machine([worker.pid]), Machine([])
        before_s = machine._cpu_s(worker.pid)
        for _ in range(5):
            await work(worker)
        worked_s = machine._cpu_s(worker.pid) - before_s
        own, foreign = knows.load(), does_not.load()
    assert worked_s >= 0.4
    assert foreign.foreign_cores * foreign.wall_s >= 0.5 * worked_s
    assert own.foreign_cores * own.wall_s <= foreign.foreign_cores * foreign.wall_s - 0.5 * worked_s
    assert foreign.disturbed


def test_the_counters_of_this_machine_are_read() -> None:
    load = Machine([os.getpid()]).load()
    assert load.cores == os.cpu_count()
    assert load.wall_s > 0
    assert load.foreign_cores <= load.busy_cores <= load.cores
