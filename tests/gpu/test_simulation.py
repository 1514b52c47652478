"""The simulator on the GPU: every bit, as a generated shader and as a table."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from difflogic.core import bernoulli
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DataError, LimitError
from difflogic.gpu import simulation as simulations
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.shaders import load_source, shader_root
from difflogic.gpu.simulation import (
    BLOCKED,
    KERNEL,
    GpuProgram,
    GpuSimulation,
    Tile,
    blocked_source,
    generated_source,
    is_worth_blocks,
)
from difflogic.reference.simulation import simulate
from tests.export_cases import life
from tests.random_netlists import random_netlist
from tests.simulation_cases import Case, cases, check_against_the_reference, random_start


@given(cases())
@settings(max_examples=12)  # each compiles a shader
def test_generated(device: GpuDevice, case: Case) -> None:
    program = GpuProgram(case.spec.netlist, device)
    assert program.generated
    check_against_the_reference(case, lambda spec: GpuSimulation(spec, program, blocks=False))


@pytest.mark.exhaustive
@given(cases(most_gates=20, most_steps=20, synchronous=True))
@settings(max_examples=12)
def test_blocked(device: GpuDevice, case: Case) -> None:
    program = GpuProgram(case.spec.netlist, device)
    assert program.tile is not None
    check_against_the_reference(case, lambda spec: GpuSimulation(spec, program, blocks=True))


@given(cases())
@settings(max_examples=12)
def test_interpreted(device: GpuDevice, case: Case) -> None:
    program = GpuProgram(case.spec.netlist, device, most_statements=-1)
    assert not program.generated
    check_against_the_reference(case, lambda spec: GpuSimulation(spec, program))


def test_a_large_circuit_is_interpreted_by_few_invocations(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    netlist = random_netlist(rng, 1500, channels=5, reach=300)
    spec = SimulationSpec(netlist, 50, 70)
    program = GpuProgram(netlist, device, most_statements=-1)
    monkeypatch.setattr(simulations, "SCRATCH_BYTES", 4 * 4 * program.registers.registers * 7)
    assert not program.generated
    check_against_the_reference(Case(spec, random_start(spec, rng), 2), lambda spec: GpuSimulation(spec, program))


def test_more_steps_than_a_submit_takes(device: GpuDevice) -> None:
    spec = SimulationSpec(life(), 40, 65)
    start = random_start(spec, np.random.default_rng(3))
    program = GpuProgram(spec.netlist, device)
    check_against_the_reference(Case(spec, start, 137), lambda spec: GpuSimulation(spec, program))


@pytest.mark.parametrize("trusts", [False, True])
@pytest.mark.parametrize("fire_units", [bernoulli.CERTAIN, 39322])
def test_sizes_in_the_text_change_no_bit(adapter: Adapter, fire_units: int, trusts: bool) -> None:
    """Simulate as a card does: in blocks, step by step with random masks, and with given masks."""
    card = GpuDevice(adapter)
    card.bakes_sizes, card.trusts_kernels = True, trusts
    spec = SimulationSpec(life(), 77, 1000, fire_units)
    program = GpuProgram(spec.netlist, card)
    start = random_start(spec, np.random.default_rng(4))
    check_against_the_reference(Case(spec, start, 11), lambda spec: GpuSimulation(spec, program, blocks=True))
    assert len(program._pipelines) == 2
    assert not any("spec.width" in text for text in program._pipelines)


@pytest.mark.parametrize(("channels", "memory", "tile"), [
    (1, 16384, (64, 8)), (1, 49152, (64, 8)), (2, 16384, (32, 4)), (3, 16384, (16, 2)), (4, 16384, (16, 2)),
    (3, 49152, (64, 8)), (8, 49152, (24, 3)), (5, 16384, None), (64, 49152, None),
])  # fmt: skip
def test_tile_fits_into_workgroup_memory(channels: int, memory: int, tile: tuple[int, int] | None) -> None:
    assert Tile.of(channels, memory) == tile
    assert tile is None or 4 * Tile(*tile).constants(channels)["TILE"] <= memory


def test_a_submit_has_whole_blocks(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    program = GpuProgram(life(), device)
    for work, steps in ((1, 8), (6e4, 16), (1e9, 512)):
        monkeypatch.setitem(simulations.WORK_AT_ONCE, True, work)
        simulation = GpuSimulation(SimulationSpec(program.netlist, 48, 64), program, blocks=True)
        assert simulation._steps_at_once == steps


def test_blocks_are_for_cards_small_circuits_and_high_grids(device: GpuDevice, adapter: Adapter) -> None:
    card = GpuDevice(replace(adapter, type="DiscreteGPU"))
    cases = ((card, 48, None), (card, 47, None), (device, 48, None), (card, 48, 8 * 24))
    answers = [
        is_worth_blocks(SimulationSpec(life(), height, 64), GpuProgram(life(), which, most))
        for which, height, most in cases
    ]
    assert answers == [True, False, False, False]


def test_the_shader_declares_what_is_bound() -> None:
    bound = {KERNEL: "spec at program masks before after nodes", BLOCKED: "spec at before after"}
    for kernel, source in {KERNEL: load_source(KERNEL), BLOCKED: blocked_source(life())}.items():
        assert " ".join(binding.name for binding in source.bindings) == bound[kernel]
        assert set(source.overrides) == ({"WG"} if kernel == KERNEL else set(Tile(64, 8).constants(1)))
    arguments = simulate.__code__.co_varnames[: simulate.__code__.co_argcount]
    assert arguments == ("spec", "netlist", "masks", "before", "after"), "the reference's"
    assert "Reference: difflogic/reference/simulation.py" in (shader_root() / f"{KERNEL}.wgsl").read_text()


def test_a_generated_error_names_the_generated_file() -> None:
    source = generated_source(life())
    (line,) = [i for i, text in enumerate(source.text.splitlines(), start=1) if text.startswith("fn next_words")]
    assert source.locate(f"wgsl:{line}:1") == "simulation/interpreted.wgsl:1:1"
    assert source.text.count("    let v") == 9 + 28


def test_a_grid_beyond_a_binding_is_refused(device: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    program = GpuProgram(life(), device)
    monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", 1 << 20)
    with pytest.raises(LimitError, match=r"^A state of 4096x4096 cells takes 2 MB, but this device binds at most 1 MB"):
        GpuSimulation(SimulationSpec(program.netlist, 4096, 4096), program)


def test_a_program_is_for_its_own_circuit(device: GpuDevice) -> None:
    with pytest.raises(DataError, match="another circuit"):
        GpuSimulation(SimulationSpec(life(), 5, 5), GpuProgram(life(), device))
