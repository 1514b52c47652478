"""Long work in short dispatches and short submits: all of it, in order, and the same bits."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.gpu import plan as planning
from difflogic.gpu import planner
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.kernels import TILED, DispatchRange, cut_ranges
from difflogic.gpu.launch import SOFTWARE, LaunchConfig
from difflogic.gpu.planner import checkpoint_distances, plan_for
from difflogic.gpu.submit import SUBMIT_SECONDS, Dispatch, SubmitQueue, cut
from tests.gpu.rig import on_device, train_alone
from tests.jobs import assert_same, make_job, outcomes, start
from tests.sampled import sampled

SIZES = st.integers(1, 40)


@given(SIZES, SIZES, SIZES, st.integers(1, 3000))
def test_spans_cover_everything_once_and_blocks_in_order(tiles: int, parts: int, work: int, most: int) -> None:
    made = cut_ranges(tiles, parts, work, most)
    seen: dict[int, list[int]] = {tile: [] for tile in range(tiles)}
    for span in made:
        assert span.tiles * span.parts * work <= max(most, work)
        for tile in range(span.first, span.end):
            seen[tile] += range(span.first_part, span.end_part)
    assert all(order == list(range(parts)) for order in seen.values())
    assert len(made) == 1 or tiles * parts * work > most


def test_the_worked_example_of_ranges() -> None:
    assert cut_ranges(4, 8, 10, 100) == [DispatchRange(0, 4, part, part + 2) for part in (0, 2, 4, 6)]
    assert len(cut_ranges(4, 8, 10, 25)) == 16


def dispatches(works: Sequence[int]) -> list[Dispatch]:
    return [Dispatch(str(number), None, None, 1, 1, work) for number, work in enumerate(works)]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 100))
def test_a_cut_list_is_whole(works: list[int], most: int) -> None:
    pieces = cut(dispatches(works), most)
    assert [each for piece in pieces for each in piece] == dispatches(works)
    for piece in pieces:
        work = [each.work for each in piece]
        assert sum(work) <= most or sum(each > 0 for each in work) == 1


@pytest.mark.parametrize("memory", sampled([((True, 1),), ((False, 1),), ((False, 2),)], [((False, 2),)]), ids=str)
@pytest.mark.parametrize("fire_rate", [1.0, 0.6])
def test_short_dispatches_and_submits_change_nothing(device: GpuDevice, monkeypatch, memory, fire_rate) -> None:
    job = make_job(grid=(9, 11), batch=5, steps=5, fire_rate=fire_rate)
    launch = LaunchConfig(8, 2).with_memory(*memory)
    monkeypatch.setattr(planning, "MAX_BLOCKS", 8)
    expected = train_alone(device, job, start(job), 3, launch=launch)
    for name in ("SOFTWARE_WORK", "HARDWARE_WORK"):
        monkeypatch.setattr(planner, name, 1)
    plan = plan_for(device, [job], launch)
    assert len(TILED["gate_backward"].ranges(plan)) == 4 * plan.chunks_per_block
    assert len(TILED["gate_forward"].ranges(plan)) == plan.chunks // 2
    monkeypatch.setattr(SubmitQueue, "learn", lambda *_: None)
    submits: list[Any] = []
    real = type(device.queue).submit
    monkeypatch.setattr(
        type(device.queue), "submit", lambda queue, commands: (submits.append(0), real(queue, commands))
    )
    model = on_device(device, [job], [start(job)], launch)
    submits.clear()
    model.train(3)
    assert len(submits) > 3 * 2 * 5
    assert_same(outcomes(model)[0], expected)


def test_submits_follow_the_clock(device: GpuDevice) -> None:
    """Twice the work that takes SUBMIT_SECONDS is two submits; what is little is never divided."""
    buffer = device.buffer("marked", 4)
    submit_queue = SubmitQueue(device, buffer, 100)
    submit_queue.learn(dispatches([1000] * 4), 2 * SUBMIT_SECONDS)
    assert [len(piece) for piece in submit_queue.pieces(dispatches([500] * 8))] == [4, 4]
    submit_queue.learn(dispatches([1000] * 4), 1000.0)
    assert [len(piece) for piece in submit_queue.pieces(dispatches([50] * 5))] == [2, 2, 1]
    submit_queue.close()
    buffer.destroy()


@given(st.integers(1, 300))
def test_wider_spacings_need_fewer_states(steps: int) -> None:
    kept = [steps // spacing + spacing for spacing in checkpoint_distances(steps)]
    assert kept == sorted(set(kept), reverse=True)
    assert kept[0] == steps + 1
    assert kept[-1] == min(steps // spacing + spacing for spacing in range(1, steps + 1))


@pytest.mark.parametrize("steps", [1, 2, 5, 6, 7])
def test_states_far_apart_change_nothing(device: GpuDevice, steps: int) -> None:
    job = make_job(steps=steps)
    expected = train_alone(device, job, start(job), 2)
    for spacing in range(1, steps + 1):
        launch = SOFTWARE[0].with_memory(store_activations=False, checkpoint_every=spacing)
        assert_same(train_alone(device, job, start(job), 2, launch=launch), expected)


def test_predicted_bytes_of_training(device: GpuDevice) -> None:
    """The plan's bytes are within 1 % of all buffers of a model, including staging and uniforms."""
    job = make_job(grid=(64, 64), batch=2)
    made: list[int] = []
    handle = type(device.handle)
    with pytest.MonkeyPatch.context() as patch:
        real = handle.create_buffer
        patch.setattr(handle, "create_buffer", lambda *a, **k: (made.append(k["size"]), real(*a, **k))[1])
        model = on_device(device, [job], [start(job)])
    predicted = model.plan.total_bytes()
    assert np.isclose(sum(made), predicted, rtol=0.01)
    model.close()
