"""The simulator on the GPU: every bit, as a generated shader and as a table."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings

from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DataError, LimitError
from difflogic.gpu import simulation as simulations
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.kernels import Binding
from difflogic.gpu.shaders import load_source, shader_root
from difflogic.gpu.simulation import BINDINGS, KERNEL, GpuProgram, GpuSimulation, generated_source
from difflogic.reference.simulation import simulate
from tests.export_cases import life
from tests.random_netlists import random_netlist
from tests.simulation_cases import Case, cases, check_against_the_reference, random_start


@given(cases())
@settings(max_examples=12)  # each compiles a shader
def test_generated(device: GpuDevice, case: Case) -> None:
    program = GpuProgram(case.spec.netlist, device)
    assert program.generated
    check_against_the_reference(case, lambda spec: GpuSimulation(spec, program))


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


def test_the_shader_binds_what_its_table_says() -> None:
    binding = re.compile(r"@group\(0\) @binding\((\d+)\) var<(\w+)(?:, (\w+))?> (\w+):")
    found = binding.findall(load_source(KERNEL).text)
    assert tuple(Binding(name, access or kind) for _, kind, access, name in found) == BINDINGS
    arguments = simulate.__code__.co_varnames[: simulate.__code__.co_argcount]
    assert arguments == ("spec", "netlist", "masks", "before", "after"), "the twin's"
    assert "Twin: difflogic/reference/simulation.py" in (shader_root() / f"{KERNEL}.wgsl").read_text()


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
