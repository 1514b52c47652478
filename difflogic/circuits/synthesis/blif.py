"""Writer of netlists as BLIF for ABC and yosys, gate by gate without simplification."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from difflogic.core import gates
from difflogic.model.netlist import Netlist


def to_blif(
    netlist: Netlist,
    inputs: Sequence[str],
    outputs: Sequence[str],
    model: str,
    latches: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return a netlist as the BLIF model `model`; `inputs` and `outputs` are the names of its ports, without latches.

    `latches` maps each latch, an input that is 0 at first, to the output that is its next value.
    """
    # The BLIF export folds gates (`straight_line`). This function does not, so that checkers also verify the folding.
    lines = [f".model {model}", f".inputs {' '.join(inputs)}", f".outputs {' '.join(outputs)}"]
    for index, (gate, (a, b)) in enumerate(zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True)):
        lines += _table(gate, netlist.bit_name(a), netlist.bit_name(b), f"g{index}")
    bits = dict(zip(netlist.output_names, netlist.outputs.tolist(), strict=True))
    lines += [f".latch {output} {latch} 0" for latch, output in latches.items()]
    for output in [*outputs, *latches.values()]:
        lines += [f".names {netlist.bit_name(bits[output])} {output}", "1 1"]
    return "\n".join([*lines, ".end", ""])


def _table(gate: int, a: str, b: str, result: str) -> list[str]:
    """Return a gate's BLIF lines. ABC rejects constants with inputs, and tables that read a name twice.

    Each gate type has one form with as few rows as possible. ABC compares equal forms by structure, but may not finish
    for two circuits of ten thousand gates in different forms.
    """
    truth = gates.TRUTH[gate]
    # Rows 0 to 3 stand for the inputs 00, 01, 10 and 11.
    rows = {row for row in range(4) if truth[row] and (a != b or row in (0, 3))}
    if len(rows) in (0, 2 if a == b else 4):
        return [f".names {result}", *["1"] * bool(rows)]
    if a == b:
        return [f".names {a} {result}", *(f"{row & 1} 1" for row in rows)]
    head = f".names {a} {b} {result}"
    for name, half in {"0-": {0, 1}, "1-": {2, 3}, "-0": {0, 2}, "-1": {1, 3}}.items():
        if rows == half:
            return [head, f"{name} 1"]
    # An OR takes one line, for its only 0, instead of three:  .names a b g
    #                                                          00 0
    inverted = len(rows) == 3 or rows == {0, 3}
    listed = {0, 1, 2, 3} - rows if inverted else rows
    return [head, *(f"{row >> 1}{row & 1} {int(not inverted)}" for row in sorted(listed))]
