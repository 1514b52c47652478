"""Functions made smaller, and proved: right on every code that a sample can have, or on those that were met.

Of the 2^28 values of 28 bits a thermometer of four times seven has only 8^4 = 4096. On all others a circuit may do what
it likes. Where a sample is bits, all their values are codes. Few codes are all listed: samples that hold every case
prove whatever agrees on them. Of many codes some are listed, and the solver is told what holds of all: where a
threshold is reached, those below it are.

Two functions are compared on the thresholds of both. Judges that know nothing of codes are given circuits in front of
which every bit is 1 where it or one above it is: that makes a code of any bits, and leaves codes what they are. So the
two agree on all bits exactly where they agreed on all codes.
"""

from collections.abc import Iterator, Sequence
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
from difflogic.model.thermometer import FixedPoint, Integers, Thermometer

F = TypeVar("F", bound=FunctionNetlist)

LISTED = 1 << 18
"""Up to so many codes all are simulated in simplification; of more the solver is asked."""
SAMPLES, SEED = 1 << 14, 9
"""Of so many codes that they cannot be listed."""
EXHAUSTIVE = 1 << 24
"""Up to so many codes a proof tries them all: seconds."""
_PART = 1 << 18
"""Codes that a proof evaluates at once."""
_OR = 7


def simplified(function: F, on_pass: OnPass = silent, effort: int = 1) -> Simplified[F]:
    """Return fewer gates and thresholds, with the same result for every sample.

    Of more than LARGE gates parts are rewritten, within a budget of work that `effort` multiplies.
    """
    thermometer = function.thermometer
    if thermometer.codes <= LISTED:
        search = _searched(function, thermometer.code_number(np.arange(thermometer.codes)), on_pass, effort=effort)
    else:
        random = np.random.default_rng(SEED)
        levels = [random.integers(0, len(values) + 1, SAMPLES) for values in thermometer.thresholds]
        # Where a threshold is reached, those below it are.
        clauses = [(input_literal(lower), input_literal(upper) ^ 1) for lower, upper in thermometer.implied]
        codes = thermometer.code_levels(levels)
        search = _searched(function, codes, on_pass, clauses, effort)
        if len(search.cell.graph.gates) > LARGE:
            made = _on_read_thresholds(search.cell.graph, function)
            return search.proved(function, made, lambda one, other: _proved_by_steps(one, other, codes))
    made = _on_read_thresholds(search.cell.graph, function)
    return search.proved(function, made, lambda one, other: prove(one, other, ["difflogic"])[0])


def _proved_by_steps(one: FunctionNetlist, other: FunctionNetlist, codes: Bits) -> Equivalence:
    """Return the verdict on the whole, or that of all steps if it is undecided: each was proved when it was made."""
    verdict = prove(one, other, ["difflogic"])[0]
    if verdict.equal is None and _agree(one, other, codes):
        verdict = Equivalence("difflogic", True, "each merge of gates, and each part that was rewritten, by SAT")
    return verdict


def _agree(one: FunctionNetlist, other: FunctionNetlist, codes: Bits) -> bool:
    """Return whether two functions agree at these codes of the first, uint8 `[bits, N]`."""
    kept = [one.input_names.index(name) for name in other.input_names]
    outputs = compared(one, other)
    return bool(np.array_equal(one.result_bits(codes)[outputs], other.result_bits(codes[kept])[outputs]))


def pruned(function: F, codes: Bits, on_pass: OnPass = silent) -> Simplified[F]:
    """Fewer gates and thresholds, the same result at these codes, uint8 `[bits, N]`; at others anything.

    Raises DataError for what is no code of the function's thermometer.
    """
    given = np.asarray(codes)
    bits = function.inputs
    if given.ndim != 2 or len(given) != bits or not given.shape[1] or not np.isin(given, (0, 1)).all():
        raise DataError(f"Codes are 0 and 1, [{bits}, N] with N at least 1, got {given.dtype}{list(given.shape)}.")
    if not function.thermometer.is_code(given).all():
        raise DataError("A column of codes is 1 above a threshold that is 0: that is no code of an observation.")
    met = np.unique(given.astype(np.uint8), axis=1)
    search = _searched(function, met, on_pass)
    found = _on_read_thresholds(search.cell.graph, function)
    equal = _agree(function, found, met)
    how = f"on the {met.shape[1]} codes met of {function.thermometer.codes}, by exhaustion"
    return Simplified(found, tuple(search.steps), Equivalence("difflogic", equal, how, proves=False))


def _searched(
    function: FunctionNetlist, codes: Bits, on_pass: OnPass, clauses: Sequence[Clause] | None = None, effort: int = 1
) -> Search[BareGraph]:
    """After the passes; without clauses all that counts is the codes, with them these are samples of what does."""
    search = Search(BareGraph(to_xag(function)), on_pass, (gate_count(function), function.inputs))
    for name, change in _passes(codes, clauses, effort).items():
        search.apply(name, _also_forgetting(change, function))
    return search


def _also_forgetting(change: Pass, function: FunctionNetlist) -> Pass:
    return lambda graph: _forgetting(change(graph), function)


def _passes(codes: Bits, clauses: Sequence[Clause] | None, effort: int) -> dict[str, Pass]:
    """Return the passes by name, in order."""
    # The last word is filled up with its last code: zeros would be one more code, which pruning was not given.
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
    """The graph as a function that has no thresholds but those it reads; bits are all left, being its interface."""
    if function.reads_bits:
        return to_netlist(graph, function)
    graph = _forgetting(graph, function)
    read = graph.support(graph.outputs) or [0]  # a constant is a gate too, and a gate reads something
    return to_netlist(narrowed(graph, read), function.on(function.thermometer.keep(read)))


def _forgetting(graph: XAG, function: FunctionNetlist) -> XAG:
    """The graph, where what is remembered is 0 if no decision ever depends on it."""
    shown = len(graph.outputs) - function.memory
    place = {output - shown: bit for bit, output in function.latches.items()}
    used, more = set[int](), True
    while more:
        # A bit that only its own next value reads is none that a decision depends on.
        read = graph.support([*graph.outputs[:shown], *(graph.outputs[shown + k] for k in used)])
        found = {k for k, bit in place.items() if bit in read}
        used, more = found, found != used
    kept = (output if k < shown or k - shown in used else FALSE for k, output in enumerate(graph.outputs))
    return rebuilt(replace(graph, outputs=tuple(kept))) if len(used) < function.memory else graph


def compared(one: FunctionNetlist, other: FunctionNetlist) -> list[int]:
    """The outputs in which functions of the same names have to agree: not what one of them remembers and never reads.

    Where they agree in these at every sample and every state, no decision of either depends on the rest, and both
    begin at 0: so they decide the same in every sequence of samples.
    """
    shown = len(one.outputs) - one.memory
    return [*range(shown), *sorted({*one.latches.values()} & {*other.latches.values()})]


def prove(one: FunctionNetlist, other: FunctionNetlist, judges: Sequence[str] | None = None) -> list[Equivalence]:
    """Return whether two functions do the same with every sample: the verdicts of `judges`, all where it is None.

    difflogic tries all codes of the thresholds of both, up to EXHAUSTIVE, else it asks the SAT solver. Raises
    CircuitError where samples or results differ.
    """
    ends = [(each.observations, each.choices or each.named_outputs, each.memory) for each in (one, other)]
    if ends[0] != ends[1] or one.reads_bits != other.reads_bits:
        said = " and ".join(f"{_few(read)} -> {_few(result)}" for read, result, _ in ends)
        raise CircuitError(
            f"Two {one.kind}s are compared between the same {one.words.inputs} and {one.words.choices}, not between "
            f"{said}."
        )
    pairs = zip(one.thermometer.thresholds, other.thermometer.thresholds, strict=True)
    both = Thermometer(tuple(tuple(sorted({*a, *b})) for a, b in pairs))
    pair = (one, other) if one.reads_bits else (on_any_bits(one, both), on_any_bits(other, both))
    if len(outputs := compared(one, other)) < len(one.outputs):
        pair = (_with_outputs(pair[0], outputs), _with_outputs(pair[1], outputs))
    if both.codes > EXHAUSTIVE:
        return prove_netlists(*pair, judges)
    found = [_by_exhaustion(*pair)] if judges is None or "difflogic" in judges else []
    others = ["berkeley-abc", "yosys"] if judges is None else [judge for judge in judges if judge != "difflogic"]
    return found + prove_netlists(*pair, others)


def _with_outputs(function: F, kept: Sequence[int]) -> F:
    """The function whose other outputs are its first input."""
    outputs = [output if k in kept else 0 for k, output in enumerate(function.outputs.tolist())]
    return function.with_gates(function.gates.tolist(), [(a, b) for a, b in function.wires.tolist()], outputs)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _by_exhaustion(one: FunctionNetlist, other: FunctionNetlist) -> Equivalence:
    codes = one.thermometer.codes
    for numbers in _parts(codes):
        bits = one.thermometer.code_number(numbers)
        results = one.result_bits(bits), other.result_bits(bits)
        if (wrong := np.flatnonzero((results[0] != results[1]).any(axis=0))).size:
            ones = tuple(name for name, bit in zip(one.input_names, bits[:, wrong[0]], strict=True) if bit)
            values = (found[:, wrong[0]].tolist() for found in results)
            outputs = tuple((name, a, b) for name, a, b in zip(one.output_names, *values, strict=True) if a != b)
            return Equivalence("difflogic", False, f"{codes} codes, by exhaustion", Counterexample(ones, outputs))
    return Equivalence("difflogic", True, f"all {codes} codes, by exhaustion")


def _parts(codes: int) -> Iterator[Integers]:
    for start in range(0, codes, _PART):
        yield np.arange(start, min(start + _PART, codes))


def on_any_bits(function: F, thermometer: Thermometer) -> F:
    """The function on more thresholds, and on any bits: each counts as 1 where it or one above it is."""
    # With the bits 0, 1, 0 of a dimension it does what it does at the code 1, 1, 0. Nothing is folded: this is the
    # judges' copy, which must be what is given, gate by gate.
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
    frame = function.on(thermometer)
    return frame.with_gates([*gates, *function.gates.tolist()], wires, outputs)


def with_comparators(function: FunctionNetlist, form: FixedPoint) -> NamedNetlist:
    """The function behind comparators, gates too: from the bits of a sample in fixed point to the result's.

    Bit `b` of number `d` is input `width*d + b`.
    """
    width = form.width
    builder = Builder(width * len(function.observations))
    code = []
    for dimension, values in enumerate(form.thresholds):
        bits = [input_literal(width * dimension + bit) for bit in range(width)]
        bits[-1] ^= 1  # with its sign inverted, two's complement is in the order of whole numbers
        for value in values:
            reached, number = TRUE, value + (1 << (width - 1))
            # From the lowest bit: x >= T holds where x is larger in this bit, or equal in it and so below. For T = -2
            # in 3 bits, `number` is -2 + 4 = 2, 010 in binary. The 0 gives x0 OR TRUE, which is TRUE; the 1 gives x1
            # AND TRUE, which is x1; the 0 of the sign gives NOT x2 OR x1. One gate is left, and it is 0 for -4 and -3
            # alone.
            for place, bit in enumerate(bits):
                reached = builder.and_(bit, reached) if number >> place & 1 else builder.or_(bit, reached)
            code.append(reached)
    outputs = builder.embed(to_xag(function), code)
    names = tuple(f"x[{bit}]" for bit in range(builder.inputs))
    frame = NamedNetlist(named_inputs=names, named_outputs=tuple(function.output_names), **gate_arrays([], [], []))
    return to_netlist(builder.finish(outputs), frame)


def structural(function: F) -> F:
    """The function after the structural passes, which prove themselves, on the thresholds that are read."""
    return _on_read_thresholds(rebuilt(to_xag(function)), function)


def live_gates(netlist: CellNetlist | FunctionNetlist) -> int:
    """Return the number of gates of a cell, or of a function: the two-input gates left when dead gates and wires go.

    Constants, duplicates and inverters go too. This is the number of gates that every text reports.
    """
    return gate_count(structural(netlist) if isinstance(netlist, FunctionNetlist) else simplify.structural(netlist))
