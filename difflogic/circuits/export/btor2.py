"""BTOR2, bit by bit: what btormc, AVR, Pono and other checkers of the model checking competition read.

Of a cell or a controller it has inputs and outputs. Of a grid it has a state for each value, which begins as anything,
and `bad`, where something is claimed, which is 1 where the claim is broken. The proof reads the file back.
Source: Niemetz, Preiner, Wolf, Biere, *BTOR2, BtorMC and Boolector 3.0* (2018).
"""

from __future__ import annotations

from difflogic.circuits.export.proving import check_cells, check_machine
from difflogic.circuits.export.testbench import draw_vectors
from difflogic.circuits.export.text import Files, about, bit_names, legend, output_names, text_of
from difflogic.errors import ExportError
from difflogic.model.grid import Grid, Machine
from difflogic.model.netlist import NamedNetlist, Netlist, gate_arrays
from difflogic.model.straight_line import lines

_VECTORS = 1 << 16

_OPERATORS = (
    "zero 1", "and 1 {a} {b}", "and 1 {a} -{b}", "", "and 1 -{a} {b}", "", "xor 1 {a} {b}", "or 1 {a} {b}",
    "nor 1 {a} {b}", "xnor 1 {a} {b}", "", "or 1 {a} -{b}", "not 1 {a}", "or 1 -{a} {b}", "nand 1 {a} {b}", "one 1",
)  # fmt: skip
_GATES = {"and": 1, "xor": 6, "or": 7, "nor": 8, "xnor": 9, "nand": 14, "not": 12, "zero": 0, "one": 15}


def export(netlist: Netlist | Grid, name: str) -> Files:
    """`NAME.btor2`."""
    return {f"{name}.btor2": _text(netlist.machine(starts=False) if isinstance(netlist, Grid) else netlist)}


def _text(netlist: Netlist) -> str:
    latches, free = (netlist.latches, netlist.free) if isinstance(netlist, Machine) else (0, 0)
    names, results = (
        (netlist.input_names, netlist.output_names) if latches else (bit_names(netlist), output_names(netlist))
    )
    text = [*(f"; {line}" for line in (about(netlist), *legend(netlist))), "1 sort bitvec 1", "2 zero 1"]
    node: dict[int, int] = {}
    number = 2

    def line(of: str) -> int:
        nonlocal number
        number += 1
        text.append(f"{number} {of}")
        return number

    kind = "state" if latches else "input"
    for bit in range(netlist.inputs):
        node[bit] = line(f"{kind} 1 {names[bit]}")
    for latch in range(free, latches):
        line(f"init 1 {node[latch]} 2")
    for gate in lines(netlist):
        a, b = (*(node[bit] for bit in gate.reads), 0, 0)[:2]
        # A gate of one input that passes it on is that input; `A` alone is left of them in straight-line code.
        node[gate.bit] = line(_OPERATORS[gate.gate].format(a=a, b=b)) if _OPERATORS[gate.gate] else a
    outputs = netlist.outputs.tolist()
    shown = len(outputs) - latches
    for index, output in enumerate(outputs[:shown]):
        line(f"{'bad' if results[index] == 'wrong' else 'output'} {node[output]} {results[index]}")
    for latch, output in enumerate(outputs[shown:]):
        line(f"next 1 {node[latch]} {node[output]}")
    return "\n".join([*text, ""])


def verify(netlist: Netlist | Grid, name: str, files: Files) -> list[str]:
    """Raises ExportError."""
    held = netlist.machine(starts=False) if isinstance(netlist, Grid) else netlist
    vectors = draw_vectors(held, _VECTORS)
    try:
        read = _read(text_of(files, f"{name}.btor2"))
    except (KeyError, ValueError, IndexError) as error:
        raise ExportError(f"The BTOR2 file cannot be read back: {error}.") from error
    if (read.inputs, len(read.outputs)) != (held.inputs, len(held.outputs)):
        raise ExportError(
            f"The BTOR2 file holds another circuit: it has {read.inputs} inputs and states and {len(read.outputs)}"
            f" results, not {held.inputs} and {len(held.outputs)}. Export it again."
        )
    stepped = [check_machine(netlist)] if isinstance(netlist, Grid) else []
    return [*stepped, check_cells(held, vectors, vectors.outputs(read), "what is read back")]


def _read(text: str) -> NamedNetlist:
    """The netlist from inputs and states to outputs, `bad` and next states, in the order of the file."""
    rows = [line.split() for line in text.splitlines() if not line.startswith(";")]
    inputs = [row for row in rows if row[1] in ("input", "state")]
    bit = {int(row[0]): index for index, row in enumerate(inputs)}
    types, wires, ends = [], [], []

    def made(gate: int, a: int, b: int) -> int:
        types.append(gate)
        wires.append((a, b))
        return len(inputs) + len(types) - 1

    def at(node: str) -> int:
        return made(12, bit[-int(node)], bit[-int(node)]) if node.startswith("-") else bit[int(node)]

    following = dict.fromkeys((int(row[0]) for row in inputs if row[1] == "state"), -1)
    for number, word, *operands in rows:
        if word in _GATES:
            a, b = ([at(each) for each in operands[1:]] * 2 or [0, 0])[:2]
            bit[int(number)] = made(_GATES[word], a, b)
        elif word in ("output", "bad"):
            ends.append(at(operands[0]))
        elif word == "next":
            following[int(operands[1])] = at(operands[2])
    outputs = [*ends, *following.values()]
    names = (tuple(row[3] for row in inputs), tuple(map(str, range(len(outputs)))))
    return NamedNetlist(**gate_arrays(types, wires, outputs), named_inputs=names[0], named_outputs=names[1])
