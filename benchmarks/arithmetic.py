"""Lower bound on the time of a simulator step: time as many register operations, without loads and stores.

The simulator's loop over rows is compiled, and the arithmetic instructions in the loop are counted. A step cannot take
less time than the same number of independent operations on registers.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple

from llvmlite import binding, ir

from difflogic.core.bits import Planes
from difflogic.cpu.codegen.processor import target
from difflogic.cpu.codegen.row_code import row_module
from difflogic.cpu.codegen.threads import together
from difflogic.engine.simulation import SimulationSpec
from difflogic.model.column_program import column_program
from difflogic.system.processor import cores

STRIDE = 80
"""Number of words between two channels in the memory of a row of 4096 cells."""
CHAINS, ROUNDS = 12, 8
"""Number of independent chains of operations, fewer than the registers, and operations per chain in an iteration."""


class Loop(NamedTuple):
    """Inner loop of machine code."""

    lines: list[str]
    computing: int
    """Number of vector instructions that are not loads, stores or moves."""
    of_stack: int
    """Number of instructions that spill a register to the stack or reload it."""


class Counted(NamedTuple):
    """Loop over rows, and the number of cells that one iteration steps."""

    loop: Loop
    cells: int


def counted(spec: SimulationSpec, triple: str, name: str, features: str) -> Counted:
    """Count the instructions of the simulator's loop over rows, compiled for a processor."""
    module = row_module(column_program(spec.netlist), features, STRIDE, masked=False)
    loop = inner_loop(_machine(triple, name, features).emit_assembly(_parsed(module, triple)))
    return Counted(loop, 64 * int(re.search(r"<(\d+) x i64>", str(module))[1]))


def inner_loop(assembly: str) -> Loop:
    """Return the shortest loop in assembly code, with its counts of instructions."""
    lines, places, loops = assembly.splitlines(), {}, []
    for at, line in enumerate(lines):
        if label := re.match(r"(\.?L\w+):", line):
            places[label[1]] = at
        jump = re.match(r"\s+(?:j|b|cb|tb)[\w.]*\s+.*?(\.?L\w+)$", line)
        if jump and jump[1] in places:
            loops.append(lines[places[jump[1]] : at + 1])
    body = [line.strip() for line in min(loops, key=len) if re.match(r"\s+[a-z]", line)]
    vectors = [line for line in body if re.search(r"[xyz]mm\d|\b[vq]\d", line)]
    moved = [line for line in vectors if re.match(r"v?mov|ld|st", line)]
    return Loop(body, len(vectors) - len(moved), len([line for line in body if re.search(r"%r[sb]p|\[sp", line)]))


class Arithmetic:
    """Contender whose step has as many register operations per thread as the simulator's step."""

    def __init__(self, spec: SimulationSpec) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        name, features = target()
        rows = counted(spec, binding.get_process_triple(), name, features)
        module = _operations(rows.cells // 64)
        machine = _machine(binding.get_process_triple(), name, features)
        parsed = _parsed(module, machine.triple)
        done = inner_loop(machine.emit_assembly(parsed)).computing
        if done != CHAINS * ROUNDS:
            raise SystemExit(f"Expected {CHAINS * ROUNDS} operations in a turn, got {done}: the compiler joined some.")
        self._engine = binding.create_mcjit_compiler(parsed, machine)
        self._engine.finalize_object()
        address = self._engine.get_function_address("operations")
        self._turns = ctypes.CFUNCTYPE(None, ctypes.c_long, ctypes.c_void_p)(address)
        self.turns_of_a_step = spec.height * spec.width / rows.cells * rows.loop.computing / (CHAINS * ROUNDS)

    def run(self, steps: int, masks: Planes | None = None) -> None:
        assert masks is None
        turns, threads = int(steps * self.turns_of_a_step), cores()
        result = ctypes.create_string_buffer(64 * threads)
        place = ctypes.addressof(result)
        together(threads, lambda thread: self._turns(turns // threads, place + 64 * thread))


def _operations(words: int) -> ir.Module:
    """Return the code of `operations(turns, result)`: each turn XORs every chain with the next one, ROUNDS times."""
    module, word, vector = ir.Module(name="operations"), ir.IntType(64), ir.VectorType(ir.IntType(64), words)
    kind = ir.FunctionType(ir.VoidType(), [word, word.as_pointer()])
    function = ir.Function(module, kind, name="operations")
    before, turn, after = map(function.append_basic_block, ("before", "turn", "after"))
    ir.IRBuilder(before).branch(turn)
    builder = ir.IRBuilder(turn)
    count = builder.phi(word)
    chains: list[Any] = [builder.phi(vector) for _ in range(CHAINS)]
    values: list[Any] = chains
    for _ in range(ROUNDS):
        values = [builder.xor(each, values[(index + 1) % CHAINS]) for index, each in enumerate(values)]
    left = builder.sub(count, ir.Constant(word, 1))
    count.add_incoming(function.args[0], before)
    count.add_incoming(left, turn)
    for index, (chain, value) in enumerate(zip(chains, values, strict=True)):
        chain.add_incoming(ir.Constant(vector, [index + 1] * words), before)
        chain.add_incoming(value, turn)
    builder.cbranch(builder.icmp_signed(">", left, ir.Constant(word, 0)), turn, after)
    builder = ir.IRBuilder(after)
    total = values[0]
    for value in values[1:]:  # so that the compiler removes no operation
        total = builder.xor(total, value)
    builder.store(total, builder.bitcast(function.args[1], vector.as_pointer()), align=8)
    builder.ret_void()
    return module


def _machine(triple: str, name: str, features: str) -> Any:
    jit = {"codemodel": "jitdefault", "jit": True} if triple == binding.get_process_triple() else {}
    return binding.Target.from_triple(triple).create_target_machine(cpu=name, features=features, opt=2, **jit)


def _parsed(module: ir.Module, triple: str) -> Any:
    module.triple = triple
    return binding.parse_assembly(str(module))
