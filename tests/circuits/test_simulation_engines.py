"""Choice of the engine of a simulation, and detection of wrong code before its use."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflogic.circuits.simulation import engines
from difflogic.circuits.simulation.loop import SimulationProgress, advance
from difflogic.circuits.simulation.results import Recording
from difflogic.core.bits import Planes
from difflogic.cpu.codegen import row_code
from difflogic.cpu.hard.simulation import CpuSimulation
from difflogic.engine.simulation import Simulation, SimulationSpec
from difflogic.errors import DeviceError, LimitError, NoAdapterError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.reference.simulation import ReferenceSimulation
from difflogic.system.files import Output
from tests.export_cases import life
from tests.random_netlists import random_netlist
from tests.simulation_cases import random_start

SPEC = SimulationSpec(life(), 40, 65, 40000, seed=2)
START = random_start(SPEC, np.random.default_rng(0))


def check_ten_steps(simulation: Simulation) -> None:
    judge = ReferenceSimulation(SPEC)
    judge.put(START)
    for each in (simulation, judge):
        each.run(10)
    np.testing.assert_array_equal(simulation.planes(), judge.planes())


def test_missing_adapter_is_refused() -> None:
    with pytest.raises(NoAdapterError, match="no such adapter"):
        engines.open_simulation(SPEC, START, "gpu:no such adapter")


def choose(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float]) -> engines.Opened:
    """Return the engine that auto opens for given times of a step."""
    names: dict[int, str] = {}

    def opener(name: str, real: Callable[..., Simulation]) -> Callable[..., Simulation]:
        def open_it(*arguments: Any, **options: Any) -> Simulation:
            simulation = real(*arguments, **options)
            names[id(simulation)] = name
            return simulation

        return open_it

    monkeypatch.setattr(engines, "_numba", opener("numba", engines._numba))
    monkeypatch.setattr(engines, "_gpu", opener("gpu", lambda spec, **_: ReferenceSimulation(spec)))
    monkeypatch.setattr(engines, "_seconds_per_step", lambda simulation, _: seconds[names[id(simulation)]])
    opened = engines.open_simulation(SPEC, START, "auto", steps=1000)
    assert names[id(opened.simulation)] == opened.name
    return opened


@pytest.mark.parametrize(
    ("hardware", "numba", "gpu", "name", "reason"),
    [
        (True, 2.6e-3, 1.3e-3, "gpu", "was the fastest measured: gpu 2.0e+06, numba 1.0e+06 cell updates/s"),
        (True, 1.3e-3, 2.6e-3, "numba", "was the fastest measured: numba 2.0e+06, gpu 1.0e+06 cell updates/s"),
        (False, 1e-2, None, "numba", "is the fastest without a hardware GPU"),
        (True, 1e-4, None, "numba", "is fast enough for so short a run"),
    ],
)
def test_auto_chooses_the_faster_and_measures_no_short_run(monkeypatch, hardware, numba, gpu, name, reason) -> None:
    monkeypatch.setattr(engines, "_hardware", lambda: hardware)
    opened = choose(monkeypatch, {"numba": numba, "gpu": gpu})
    assert (opened.name, opened.reason) == (name, reason)


def test_auto_gives_the_reason_against_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Simulation:
        raise NoAdapterError("The adapter is lost: start it again.")

    monkeypatch.setattr(engines, "_hardware", lambda: True)
    monkeypatch.setattr(engines, "_gpu", refuse)
    monkeypatch.setattr(engines, "_seconds_per_step", lambda *_: 1e-2)
    opened = engines.open_simulation(SPEC, START, "auto", steps=1000)
    assert (opened.name, opened.reason) == ("numba", "is the fastest; gpu is unavailable: The adapter is lost")
    check_ten_steps(opened.simulation)


def test_wrong_code_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    other = random_netlist(np.random.default_rng(3), 30)
    monkeypatch.setattr(row_code, "RowCode", lambda _, right=row_code.RowCode: right(other))
    with pytest.raises(DeviceError, match=r"^The engine numba differs from the reference on a test"):
        engines.open_simulation(SPEC, START, "numba")


def test_grid_must_fit_into_memory() -> None:
    """A state and a copy for its file fit; the reference needs far more."""
    spec = SimulationSpec(CellNetlist.build(2, False, [], [], [4, 13]), 65536, 65536)
    state = 2 * 65536**2 // 8
    engines.check_fits(spec, None)
    engines.check_fits(spec, int(2.4 * state))
    with pytest.raises(
        LimitError,
        match=r"^65536x65536 cells with 2 channels need 2\.5 GB, but 1\.1 GB are free: about 4\d{4}x4\d{4} cells fit",
    ):
        engines.check_fits(spec, state)
    with pytest.raises(LimitError, match="are free: about"):
        engines.check_fits(spec, 20 * state, "reference")


@pytest.mark.parametrize(
    ("file", "every", "written"),
    [("a.png", None, 25.8), ("a.npy", None, 25.8), ("a.npy", 5, 137.4), ("a.rle", None, 249.1)],
)
def test_writing_of_the_file_must_fit_too(file: str, every: int | None, written: float, tmp_path: Path) -> None:
    spec = SimulationSpec(CellNetlist.build(2, False, [], [], [4, 13], visible=2), 65536, 65536)
    recording = Recording(Output(tmp_path / file, False), spec, 10, every)
    with pytest.raises(LimitError, match=f" GB, {written} GB of them to write the file, but 10.0 GB are free: about "):
        engines.check_fits(spec, 10**10, to_write=recording.held_bytes)


class Notes:
    """Watcher that records its calls."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.frames: list[tuple[int, Planes]] = []
        self.steps: list[int] = []

    def frame(self, progress: SimulationProgress, simulation: Simulation) -> None:
        self.frames.append((progress.step, simulation.planes()))

    def advanced(self, progress: SimulationProgress) -> None:
        self.steps.append(progress.step)


def run(steps: int, every: int, stop_at: int = 10**9) -> tuple[SimulationProgress, Notes, Simulation]:
    simulation = CpuSimulation(SPEC, threads=1)
    simulation.put(START)
    notes = Notes(every)
    progress = advance(simulation, steps, notes, lambda: bool(notes.steps) and notes.steps[-1] >= stop_at)
    return progress, notes, simulation


def test_frames_are_passed_at_their_steps_and_at_the_end() -> None:
    progress, notes, simulation = run(25, 10)
    assert [step for step, _ in notes.frames] == [0, 10, 20, 25]
    assert notes.steps[-1] == progress.step == simulation.step == 25
    np.testing.assert_array_equal(notes.frames[-1][1], simulation.planes())
    assert [step for step, _ in run(20, 10)[1].frames] == [0, 10, 20], "the last only once"
    assert run(20, 0)[1].frames == []


def test_stopped_run_reports_its_step() -> None:
    progress, notes, simulation = run(10**9, 10, stop_at=30)
    assert progress.step == simulation.step == 30
    assert notes.frames[-1][0] == 30
    assert progress.updates_per_s == pytest.approx(30 * 40 * 65 / progress.seconds)


def test_run_of_no_steps_shows_one_frame() -> None:
    progress, notes, _ = run(0, 10)
    assert progress.updates_per_s == 0
    assert [step for step, _ in notes.frames] == [0]
