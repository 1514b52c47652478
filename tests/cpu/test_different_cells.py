"""Test that cells that are equal for every circuit are computed once, with the same results."""

from dataclasses import replace

import numpy as np
import pytest

from difflogic.cpu.engine import CpuEngine
from difflogic.cpu.model import CpuModel
from difflogic.cpu.tables import make_grid, step_grids
from difflogic.engine.job import Job
from difflogic.engine.shape import Shape
from difflogic.reference.engine import ReferenceEngine
from tests import tolerances
from tests.jobs import assert_same, make_job, start, train

CELLS: dict[str, list[tuple[int, int]]] = {
    "zeros": [],
    "one in the middle": [(4, 5)],
    "one in a corner": [(0, 10)],
    "two": [(1, 2), (6, 8)],
    "stripes": [(row, column) for row in range(9) for column in range(0, 11, 2)],
    "a row": [(3, column) for column in range(11)],
}


def from_cells(cells: list[tuple[int, int]], periodic: bool, steps: int, **fields: object) -> Job:
    """The cells are 1 in every channel of a grid of 9x11."""
    job = make_job(
        grid=(9, 11), steps=steps, batch=2, probes=1, model={"periodic": periodic}, task={"start": "zeros"}, **fields
    )
    begin = np.zeros((9, 11, job.circuit.channels), dtype=np.uint8)
    for cell in cells:
        begin[cell] = 1
    return replace(job, start=begin, probes=begin[None])


@pytest.mark.parametrize("periodic", [False, True], ids=["bordered", "torus"])
@pytest.mark.parametrize("steps", [1, 3, 7])
@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_training_on_smaller_grids_equals_the_complete_grid(cells, steps, periodic) -> None:
    job = from_cells(cells, periodic, steps)
    state, rows, evaluation = train(CpuEngine(2), job, start(job), 3)
    expected, wanted, judged = train(ReferenceEngine(), job, start(job), 3)
    np.testing.assert_allclose(
        [row.soft_loss for row in rows], [row.soft_loss for row in wanted], rtol=tolerances.LOSS_RTOL
    )
    np.testing.assert_allclose(state.logits, expected.logits, rtol=0, atol=3e-3)
    assert evaluation == judged


def test_smaller_grids_depend_on_no_threads_and_allow_resume() -> None:
    job = from_cells([(4, 5)], False, 5)
    once = train(CpuEngine(1), job, start(job), 6)
    assert_same(train(CpuEngine(3), job, start(job), 6), once)
    engine = CpuEngine(2)
    left = engine.open([job], [start(job)])
    left.train(2)
    resumed = train(engine, job, left.states()[0], 4)
    np.testing.assert_array_equal(resumed[0].logits, once[0].logits)


@pytest.mark.parametrize(("periodic", "sides"), [(True, [4, 6, 8, 10, 12, 14, 16, 18, 20, 20]), (False, [20] * 10)])
def test_growth_from_one_cell_has_few_different_cells_at_first(periodic: bool, sides: list[int]) -> None:
    """On a torus 2t + 4 rows and columns; a border makes others different too."""
    begin = np.zeros((20, 20, 2), dtype=np.uint8)
    begin[10, 10] = 1
    shape = Shape(1, 20, 20, 2, steps=10, periodic=periodic)
    steps, *_ = step_grids(make_grid(shape), shape, 9, begin)
    found = steps.grids.height[steps.of_step].tolist()
    assert found == sides if periodic else found[0] == 6 < found[1] == 10 < found[-1] == 20


@pytest.mark.parametrize(
    "fields",
    [{"task": {"start": "zeros", "loss_steps": (2, 3)}}, {"task": {"start": "zeros", "flip": 0.1}}, {"fire_rate": 0.6}],
    ids=["judged on the way", "faults", "asynchronous"],
)
def test_diverging_cells_need_the_complete_grid(fields: dict[str, object]) -> None:
    job = make_job(grid=(9, 11), **{"task": {"start": "zeros"}, **fields})
    job = replace(job, start=np.zeros((9, 11, job.circuit.channels), dtype=np.uint8))
    model = CpuEngine(1).open([job], [start(job)])
    assert isinstance(model, CpuModel)
    assert not model.work.steps.of_step.any()
