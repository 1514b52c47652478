"""Simplification of functions, proved for all thermometer codes of samples, or pruning to the codes that occur.

Four numbers with seven thresholds each have 8^4 = 4096 codes among the 2^28 values of 28 bits; all other values are
don't cares. If samples consist of bits, all values are codes. If there are few codes, all are simulated, which is a
proof. Otherwise random codes are simulated, and clauses tell the solver that all thresholds below a reached one are 1.

Two functions are compared on all thresholds of both. External checkers compare circuits for any bits, so gates before
each function set a bit to 1 if the bit of a higher threshold is 1. They turn any bits into a code, and preserve codes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from difflogic.circuits.synthesis import simplify
from difflogic.circuits.synthesis.cell import BareGraph
from difflogic.circuits.synthesis.convert import gate_count, to_netlist, to_xag
from difflogic.circuits.synthesis.large import rewritten
from difflogic.circuits.synthesis.prove import Counterexample, Equivalence
from difflogic.circuits.synthesis.prove import prove as prove_netlists
from difflogic.circuits.synthesis.resubstitution import improved
from difflogic.circuits.synthesis.resynthesis import resynthesised_where
from difflogic.circuits.synthesis.sat import Clause
from difflogic.circuits.synthesis.simplify import OnPass, Pass, Search, Simplified, silent
from difflogic.circuits.synthesis.sweep import LARGE, swept_by_proof, swept_on
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, Builder, input_literal, narrowed, rebuilt
from difflogic.core.bits import Bits, pack_bits
from difflogic.errors import CircuitError, DataError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.netlist import NamedNetlist, gate_arrays
from difflogic.model.thermometer import FixedPoint, Thermometer

F = TypeVar("F", bound=FunctionNetlist)

LISTED = 1 << 18
"""Maximum number of codes for which all codes are simulated; if there are more, SAT proves each merge."""
SAMPLES, SEED = 1 << 14, 9
"""Number and seed of random codes that are simulated if there are more than LISTED."""
EXHAUSTIVE = 1 << 24
"""Maximum number of codes for a proof by exhaustion, which takes seconds."""
_PART = 1 << 18
"""Number of codes that a proof by exhaustion evaluates at once."""
_OR = 7


def simplified(function: F, on_pass: OnPass = silent, effort: int = 1) -> Simplified[F]:
    """Return the function with fewer gates and thresholds and equal results for every sample, with a proof.

    A graph of more than LARGE gates is rewritten in parts, within a budget of work that is multiplied by `effort`.
    """
    thermometer = function.thermometer
    if thermometer.codes <= LISTED:
        search = _searched(function, thermometer.code_number(np.arange(thermometer.codes)), on_pass, effort=effort)
    else:
        random = np.random.default_rng(SEED)
        levels = [random.integers(0, len(values) + 1, SAMPLES) for values in thermometer.thresholds]
        # If a threshold is reached, so are all thresholds below it.
        clauses = [(input_literal(lower), input_literal(upper) ^ 1) for lower, upper in thermometer.implied]
        codes = thermometer.code_levels(levels)
        search = _searched(function, codes, on_pass, clauses, effort)
        if len(search.cell.graph.gates) > LARGE:
            after = _on_read_thresholds(search.cell.graph, function)
            return search.proved(function, after, lambda one, other: _proved_by_steps(one, other, codes))
    after = _on_read_thresholds(search.cell.graph, function)
    return search.proved(function, after, lambda one, other: prove(one, other, ["difflogic"])[0])


def _proved_by_steps(one: FunctionNetlist, other: FunctionNetlist, codes: Bits) -> Equivalence:
    """Prove two functions equal; if undecided but equal on `codes`, rely on the SAT proofs of the passes."""
    verdict = prove(one, other, ["difflogic"])[0]
    if verdict.equal is None and _agree(one, other, codes):
        verdict = Equivalence("difflogic", True, "each merge of gates, and each part that was rewritten, by SAT")
    return verdict


def _agree(one: FunctionNetlist, other: FunctionNetlist, codes: Bits) -> bool:
    """Return whether two functions agree on `codes`, codes of the first one, uint8 `[bits, N]`."""
    inputs = [one.input_names.index(name) for name in other.input_names]
    outputs = compared(one, other)
    return bool(np.array_equal(one.result_bits(codes)[outputs], other.result_bits(codes[inputs])[outputs]))


def pruned(function: F, codes: Bits, on_pass: OnPass = silent) -> Simplified[F]:
    """Return the function simplified for `codes`, uint8 `[bits, N]`; all other codes are don't cares.

    Raises DataError if a column is not a valid code of the function's thermometer.
    """
    array = np.asarray(codes)
    bits = function.inputs
    if array.ndim != 2 or len(array) != bits or not array.shape[1] or not np.isin(array, (0, 1)).all():
        raise DataError(f"Codes must be 0 and 1, [{bits}, N > 0], got {array.dtype}{list(array.shape)}.")
    if not function.thermometer.is_code(array).all():
        raise DataError("Each column of codes must be a thermometer code: 1 at a threshold requires 1 at lower ones.")
    met = np.unique(array.astype(np.uint8), axis=1)
    search = _searched(function, met, on_pass)
    after = _on_read_thresholds(search.cell.graph, function)
    equal = _agree(function, after, met)
    how = f"on the {met.shape[1]} codes met of {function.thermometer.codes}, by exhaustion"
    return Simplified(after, tuple(search.steps), Equivalence("difflogic", equal, how, proves=False))


def _searched(
    function: FunctionNetlist, codes: Bits, on_pass: OnPass, clauses: Sequence[Clause] | None = None, effort: int = 1
) -> Search[BareGraph]:
    """Apply all passes, and return the search. `codes` are all valid codes or, with `clauses`, samples of them."""
    search = Search(BareGraph(to_xag(function)), on_pass, (gate_count(function), function.inputs))
    for name, change in _passes(codes, clauses, effort).items():
        search.apply(name, _then_without_dead_latches(change, function))
    return search


def _then_without_dead_latches(change: Pass, function: FunctionNetlist) -> Pass:
    return lambda graph: _without_dead_latches(change(graph), function)


def _passes(codes: Bits, clauses: Sequence[Clause] | None, effort: int) -> dict[str, Pass]:
    """Return the passes by name, in the order in which they are applied."""
    # Copies of the last code fill the last word, since zeros would add a code.
    words = pack_bits(np.concatenate([codes, np.repeat(codes[:, -1:], -codes.shape[1] % 64, axis=1)], axis=1))

    def merged(graph: XAG) -> XAG:
        return swept_on(graph, words) if clauses is None else swept_by_proof(graph, words, clauses, effort)

    def resynthesised(graph: XAG) -> XAG:
        if len(graph.gates) > LARGE:
            return rewritten(graph, effort)
        return improved(graph, words, effort=effort) if clauses is None else resynthesised_where(graph, words, clauses)

    return {
        "structural hashing": rebuilt,
        "SAT sweeping on the codes": merged,
        "resubstitution on the codes": resynthesised,
    }


def _on_read_thresholds(graph: XAG, function: F) -> F:
    """Return the graph as a function with only the thresholds that it reads, or all inputs if samples are bits."""
    if function.reads_bits:
        return to_netlist(graph, function)
    graph = _without_dead_latches(graph, function)
    read = graph.support(graph.outputs) or [0]  # a constant is a gate, which must have an input
    return to_netlist(narrowed(graph, read), replace(function, thermometer=function.thermometer.keep(read)))


def _without_dead_latches(graph: XAG, function: FunctionNetlist) -> XAG:
    """Return the graph with next value 0 for each latch that no decision depends on."""
    shown = len(graph.outputs) - function.memory
    place = {output - shown: bit for bit, output in function.latches.items()}
    used, more = set[int](), True
    while more:
        # A latch that affects only its own next value is dead.
        read = graph.support([*graph.outputs[:shown], *(graph.outputs[shown + k] for k in used)])
        live = {k for k, bit in place.items() if bit in read}
        used, more = live, live != used
    outputs = (output if k < shown or k - shown in used else FALSE for k, output in enumerate(graph.outputs))
    return rebuilt(replace(graph, outputs=tuple(outputs))) if len(used) < function.memory else graph


def compared(one: FunctionNetlist, other: FunctionNetlist) -> list[int]:
    """Return the outputs that must be equal: all except next values of latches that `one` or `other` never reads.

    If these are equal for every sample and state, so are all decisions in a sequence, since latches begin at 0.
    """
    shown = len(one.outputs) - one.memory
    return [*range(shown), *sorted({*one.latches.values()} & {*other.latches.values()})]


def prove(one: FunctionNetlist, other: FunctionNetlist, judges: Sequence[str] | None = None) -> list[Equivalence]:
    """Return the result of each checker in `judges`, by default all, on the equality of two functions for every sample.

    The checker `difflogic` tries all codes on the thresholds of both if there are at most EXHAUSTIVE, otherwise it uses
    SAT. Raises CircuitError if the functions have different kinds of samples or results.
    """
    ends = [(end.observations, end.choices or end.named_outputs, end.memory) for end in (one, other)]
    if ends[0] != ends[1] or one.reads_bits != other.reads_bits:
        types = " and ".join(f"{_few(read)} -> {_few(result)}" for read, result, _ in ends)
        raise CircuitError(
            f"Expected two {one.kind}s with equal {one.words.inputs} and {one.words.choices}, got {types}."
        )
    pairs = zip(one.thermometer.thresholds, other.thermometer.thresholds, strict=True)
    both = Thermometer(tuple(tuple(sorted({*a, *b})) for a, b in pairs))
    pair = (one, other) if one.reads_bits else (on_any_bits(one, both), on_any_bits(other, both))
    if len(outputs := compared(one, other)) < len(one.outputs):
        pair = (_with_outputs(pair[0], outputs), _with_outputs(pair[1], outputs))
    if both.codes > EXHAUSTIVE:
        return prove_netlists(*pair, judges)
    own = [_by_exhaustion(*pair)] if judges is None or "difflogic" in judges else []
    others = ["berkeley-abc", "yosys"] if judges is None else [judge for judge in judges if judge != "difflogic"]
    return own + prove_netlists(*pair, others)


def _with_outputs(function: F, indices: Sequence[int]) -> F:
    """Return the function with the first input in place of each output that is not among `indices`."""
    outputs = [output if k in indices else 0 for k, output in enumerate(function.outputs.tolist())]
    return function.with_gates(function.gates.tolist(), [(a, b) for a, b in function.wires.tolist()], outputs)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _by_exhaustion(one: FunctionNetlist, other: FunctionNetlist) -> Equivalence:
    codes = one.thermometer.codes
    for first in range(0, codes, _PART):
        bits = one.thermometer.code_number(np.arange(first, min(first + _PART, codes)))
        results = one.result_bits(bits), other.result_bits(bits)
        if (wrong := np.flatnonzero((results[0] != results[1]).any(axis=0))).size:
            ones = tuple(name for name, bit in zip(one.input_names, bits[:, wrong[0]], strict=True) if bit)
            values = (result[:, wrong[0]].tolist() for result in results)
            outputs = tuple((name, a, b) for name, a, b in zip(one.output_names, *values, strict=True) if a != b)
            return Equivalence("difflogic", False, f"{codes} codes, by exhaustion", Counterexample(ones, outputs))
    return Equivalence("difflogic", True, f"all {codes} codes, by exhaustion")


def on_any_bits(function: F, thermometer: Thermometer) -> F:
    """Return the function on more thresholds, for any bits: a bit counts as 1 if that of a higher threshold is 1."""
    # The bits 0, 1, 0 of a dimension count as the code 1, 1, 0. Gates are not folded, since checkers must compare the
    # original gates.
    gates, wires = list[int](), list[tuple[int, int]]()
    place = dict[tuple[int, float], int]()
    for bit, (dimension, index) in reversed(list(enumerate(thermometer.places))):
        values = thermometer.thresholds[dimension]
        above = place[dimension, values[index + 1]] if index + 1 < len(values) else bit
        gates.append(_OR)
        wires.append((bit, above))
        place[dimension, values[index]] = thermometer.bits + len(gates) - 1
    own = function.thermometer
    moved = [place[d, own.thresholds[d][i]] for d, i in own.places]
    moved += range(thermometer.bits + len(gates), thermometer.bits + len(gates) + len(function.gates))
    outputs = [moved[output] for output in function.outputs.tolist()]
    wires += [(moved[a], moved[b]) for a, b in function.wires.tolist()]
    frame = replace(function, thermometer=thermometer)
    return frame.with_gates([*gates, *function.gates.tolist()], wires, outputs)


def with_comparators(function: FunctionNetlist, form: FixedPoint) -> NamedNetlist:
    """Return the function as a netlist on the bits of a fixed-point sample, with comparators for thresholds.

    Bit `b` of dimension `d` of the sample is input `width*d + b`.
    """
    width = form.width
    builder = Builder(width * len(function.observations))
    code = []
    for dimension, values in enumerate(form.thresholds):
        bits = [input_literal(width * dimension + bit) for bit in range(width)]
        bits[-1] ^= 1  # with an inverted sign bit, two's complement is ordered like unsigned numbers
        for value in values:
            reached, number = TRUE, value + (1 << (width - 1))
            # From the lowest bit: x >= T if x is larger in this bit, or equal in it and x >= T in all lower bits. For
            # T = -2 with 3 bits, `number` is -2 + 4 = 2, binary 010. The lowest 0 gives x0 OR TRUE = TRUE; the 1 gives
            # x1 AND TRUE = x1; the 0 for the sign gives NOT x2 OR x1: one gate, which is 0 only for -4 and -3.
            for place, bit in enumerate(bits):
                reached = builder.and_(bit, reached) if number >> place & 1 else builder.or_(bit, reached)
            code.append(reached)
    outputs = builder.embed(to_xag(function), code)
    names = tuple(f"x[{bit}]" for bit in range(builder.inputs))
    frame = NamedNetlist(named_inputs=names, named_outputs=tuple(function.output_names), **gate_arrays([], [], []))
    return to_netlist(builder.finish(outputs), frame)


def structural(function: F) -> F:
    """Apply structural passes, which need no proof, to the function, and remove thresholds that are not read."""
    return _on_read_thresholds(rebuilt(to_xag(function)), function)


def live_gates(netlist: CellNetlist | FunctionNetlist) -> int:
    """Return the number of live two-input gates, as shown in all reports; equal gates count once."""
    return gate_count(structural(netlist) if isinstance(netlist, FunctionNetlist) else simplify.structural(netlist))
