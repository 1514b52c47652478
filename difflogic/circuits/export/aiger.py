"""Export of binary AIGER, AND nodes and inverters, for ABC and model checkers. ABC verifies the exported file.

A cell has inputs `patch[9*channel + 3*dy + dx]` and outputs `result[channel]`; a controller has `code[i]` and
`action[i]`, and any other function `code[i]` and `result[i]`. An XOR takes three ANDs. A grid has latches that begin at
0, as the oldest version of the format requires. Its inputs `start[y][x][channel]` are the state in the first step, so
any initial state is possible. If the grid has a claim, the only output is 1 if the claim is violated.
Source: Biere, *The AIGER And-Inverter Graph (AIG) Format* (2007).
"""

from difflogic.circuits.export.proving import check_machine, proved_by_abc
from difflogic.circuits.export.text import Files, about, bit_names, legend, output_names
from difflogic.circuits.synthesis.xag import FALSE, Builder, input_literal
from difflogic.model.controller import Controller
from difflogic.model.grid import Grid, LatchNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines


def export(netlist: Netlist | Grid, name: str) -> Files:
    """Return the circuit in binary AIGER format, as the contents of `NAME.aig`."""
    return {f"{name}.aig": encode(_machine(netlist))}


def _machine(netlist: Netlist | Grid) -> Netlist:
    """Return the netlist to export: with latches for a grid or a controller with memory, otherwise unchanged."""
    if isinstance(netlist, Grid) or (isinstance(netlist, Controller) and netlist.memory):
        return netlist.machine()
    return netlist


def encode(netlist: Netlist) -> bytes:
    """Return the contents of a binary AIGER file for a netlist."""
    latches = netlist.latches if isinstance(netlist, LatchNetlist) else 0
    # The builder numbers literals as AIGER does.
    builder = Builder(netlist.inputs, share=False)
    literal = {bit: input_literal(bit) for bit in range(netlist.inputs)}
    for line in lines(netlist):
        a, b = (*(literal[bit] for bit in line.reads), FALSE, FALSE)[:2]
        literal[line.bit] = _gate(builder, line.gate, a, b)
    outputs = [literal[output] for output in netlist.outputs.tolist()]
    inputs, shown = netlist.inputs - latches, len(outputs) - latches
    head = f"aig {netlist.inputs + len(builder.gates)} {inputs} {latches} {shown} {len(builder.gates)}\n"
    # Next values of latches come before the outputs, since latches come after the inputs.
    text = head + "".join(f"{output}\n" for output in outputs[shown:] + outputs[:shown])
    # An AND is written as two differences: its literal (the next even number) minus its larger input, and the larger
    # input minus the smaller one. The bytes of 12 = AND(10, 6) are 2 and 4.
    nodes = b"".join(
        _delta(2 * (1 + netlist.inputs + index) - high) + _delta(high - low)
        for index, (_, low, high) in enumerate(builder.gates)
    )
    comment = "\n".join([about(netlist), *legend(netlist)])
    machine = isinstance(netlist, LatchNetlist)
    names = netlist.input_names if machine else bit_names(netlist)[: netlist.inputs]
    results = netlist.output_names if machine else output_names(netlist)
    rows = [f"i{bit} {name}" for bit, name in enumerate(names[:inputs])]
    rows += [f"l{latch} {name}" for latch, name in enumerate(names[inputs:])]
    rows += [f"o{index} {name}" for index, name in enumerate(results[:shown])]
    return text.encode() + nodes + "".join(f"{row}\n" for row in [*rows, "c", comment]).encode()


def _gate(builder: Builder, gate: int, a: int, b: int) -> int:
    """Build the function of gate id `gate`, 0 to 15, of the literals `a` and `b` from ANDs; return its literal."""
    rows = [row for row in range(4) if gate >> (3 - row) & 1]
    inverted = len(rows) > 2 or rows == [0, 3]  # XNOR is an inverted XOR, as in other programs
    if inverted:
        rows = [row for row in range(4) if row not in rows]
    result = FALSE
    # XOR is (a AND NOT b) OR (NOT a AND b). The OR also takes an AND, so that an XOR takes three.
    for row in rows:
        result = builder.or_(result, builder.and_(a ^ 1 ^ (row >> 1), b ^ 1 ^ (row & 1)))
    return result ^ inverted


def _delta(value: int) -> bytes:
    """Encode a number with seven bits per byte, lowest first; the top bit of a byte is 1 if more bytes follow."""
    coded = bytearray()
    while value > 0x7F:
        coded.append(value & 0x7F | 0x80)
        value >>= 7
    coded.append(value)
    return bytes(coded)


def verify(netlist: Netlist | Grid, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError or ToolError."""
    proved = proved_by_abc(_machine(netlist), files, f"{name}.aig")
    return [check_machine(netlist), *proved] if isinstance(netlist, Grid) else proved
