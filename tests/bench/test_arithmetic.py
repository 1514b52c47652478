"""The limit that a simulated step is compared with."""

from llvmlite import binding

from benchmarks.arithmetic import Arithmetic, counted
from difflogic.engine.simulation import SimulationSpec
from tests.export_cases import life


def test_as_many_operations_as_the_loop_has() -> None:
    spec = SimulationSpec(life(), 128, 4096)
    limit = Arithmetic(spec)  # which counts its own operations
    limit.run(8)
    assert 0 < limit.turns_of_a_step < 128 * 4096 / 64


def test_wider_vectors_take_fewer_instructions_for_a_cell() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    spec = SimulationSpec(life(), 128, 4096)
    per_cell = []
    for name, features in (("znver4", "+avx512f"), ("haswell", "+avx2"), ("nehalem", "+sse2")):
        rows = counted(spec, "x86_64-unknown-linux-gnu", name, features)
        assert rows.loop.of_stack == 0
        per_cell.append(rows.loop.computing / rows.cells)
    assert per_cell == sorted(per_cell)
