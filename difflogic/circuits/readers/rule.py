"""Build circuits of rules without training, from a rule's table or the decision diagram of a `.rule` file.

A cell with n states has ceil(log2 n) channels, and channel 0 is the lowest bit of the state. Bit combinations that are
no state are don't cares.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np

from difflogic.circuits.readers import rule_file
from difflogic.circuits.readers.rule_file import RuleFile
from difflogic.circuits.synthesis.cell import neighbour
from difflogic.circuits.synthesis.convert import to_netlist
from difflogic.circuits.synthesis.symmetric import rebuilt_symmetric
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, Builder, rebuilt
from difflogic.config.customise import load_rule
from difflogic.config.dataset import Dataset
from difflogic.core import rules, wiring
from difflogic.errors import ConfigError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario

SUFFIX, FILE = ".rule", "table.rule"
"""Suffix of Golly's rule files, and name of the rule file in a run folder."""
SEED, SIDE, FRAMES = 3, 32, 16
"""Seed, grid side and number of steps of the recording that `samples` makes from a rule."""
STEPS = 100
"""Number of steps in the scenario of a rule whose notation contains a grid size."""


def named(path: Path) -> str | None:
    """Return the rule that `path` gives as a file, notation or `.rule` name; otherwise None. Raises ConfigError."""
    if path.is_file() and path.suffix == SUFFIX:
        return str(path)
    if not path.exists() and (reason := rules.refusal(str(path))):
        raise ConfigError(reason)
    with suppress(ConfigError):
        if not path.exists():
            return rules.parse(str(path)).name
        if path.is_file() and path.suffix in (".txt", ".npy"):
            return load_rule(path)
    if not path.exists() and (file := rule_file.find(rules.bounds(str(path))[0], path.parent)):
        return str(file)
    return None


def rule_netlist(rule: str, periodic: bool) -> CellNetlist:
    """Build the circuit of a rule or a `.rule` file within milliseconds; `simplify` can make it smaller.

    Raises:
        ConfigError: `rule` is no valid notation.
        CircuitError: The file contains no valid rule.
    """
    if rule.endswith(SUFFIX):
        file = rule_file.load(Path(rule))
        states, around, graph, named = file.states, file.neighbourhood, _of_file(file), file.colours
    else:
        parsed, named = rules.parse(rule), {}
        states, around, graph = parsed.states, parsed.neighbourhood or "moore", _of_table(parsed.table)
        if states > 2:
            graph = _of_states(graph, states, parsed.has_history)
    channels = (states - 1).bit_length()
    # States without a colour get Golly's default colours, from red to yellow.
    colours = [(48, 48, 48), *((255, 255 * state // max(1, states - 2), 0) for state in range(states - 1))]
    colours = [named.get(state, colour) for state, colour in enumerate(colours)] if states > 2 or named else []
    outputs = [wiring.CENTRE] * channels
    like = CellNetlist.build(channels, periodic, [], [], outputs, neighbourhood=around, colours=colours)
    return to_netlist(rebuilt(graph), like)


def located(rule: str, path: Path) -> str:
    """Return `path` if it is a rule file, else the file FILE in or next to `path`; if there is none, return `rule`."""
    file = path if path.suffix == SUFFIX else (path if path.is_dir() else path.parent) / FILE
    return str(file) if file.is_file() else rule


def on_grid(rule: str, notation: str) -> CellNetlist:
    """Return the circuit of `rule` with the boundary and grid size that `notation` specifies, by default a torus."""
    _, periodic, size = rules.bounds(notation)
    netlist = rule_netlist(rule, periodic)
    return netlist if size is None else replace(netlist, scenario=Scenario("random", *size, STEPS))


def samples(rule: str, notation: str) -> Dataset | None:
    """Return a random rollout of `rule` on the grid of `notation` as samples; None for a notation of two states."""
    states = rule_file.load(Path(rule)).states if rule.endswith(SUFFIX) else rules.parse(rule).states
    if states == 2 and not rule.endswith(SUFFIX):
        return None
    _, periodic, size = rules.bounds(notation)
    netlist = rule_netlist(rule, periodic)
    grids = np.random.default_rng(SEED).integers(0, states, (1, *(size or (SIDE, SIDE))))
    first = (grids[..., None] >> np.arange(netlist.channels) & 1).astype(np.uint8)
    frames = netlist.rollout(first, FRAMES)[:, 0]
    return Dataset.of(frames[:-1], frames[1:])


def _of_table(entries: rules.Table) -> XAG:
    """Return the smaller of two graphs of a rule table: a decision diagram, and one that counts neighbours."""
    cells = [neighbour(0, cell) for cell in range(wiring.PATCH)]
    builder = Builder(wiring.PATCH)
    # The first cell of the patch is the highest bit of an entry's index.
    diagram = builder.finish([_chosen(builder, entries.tolist(), cells[::-1])])
    return min(diagram, rebuilt_symmetric(diagram), key=lambda graph: len(graph.gates))


def _of_states(alive: XAG, states: int, has_history: bool) -> XAG:
    """Return the graph of a rule of more than two states; `alive` computes birth and survival from nine bits."""
    # Next states of each state if `alive` is 1 and if it is 0. A dying cell counts up; a history's marks do not change.
    after = [(1, 0), (1, 2 % states), *((state, state) for state in [*range(3, states), 0])]
    living = {1}
    if has_history:
        after, living = [(1, 0), (1, 2), (1, 2), (3, 4), (3, 4), (5, 4), (6, 6)], {1, 3, 5}
    channels = (states - 1).bit_length()
    builder = Builder(wiring.PATCH * channels)
    codes = [[neighbour(channel, cell) for channel in range(channels)] for cell in range(wiring.PATCH)]
    lives = [_chosen(builder, [int(state in living) for state in range(states)], code) for code in codes]
    [result] = builder.embed(alive, lives)
    if has_history:  # a living cell next to a boundary, state 6, dies
        walls = [_chosen(builder, [int(state == 6) for state in range(states)], code) for code in codes]
        touched = reduce(builder.or_, walls)
        result = builder.and_(result, builder.and_(lives[wiring.CENTRE], touched) ^ 1)
    outputs = []
    for channel in range(channels):
        bits = [(live >> channel & 1, dead >> channel & 1) for live, dead in after]
        entries = [live if live == dead else result ^ dead for live, dead in bits]
        outputs.append(_chosen(builder, entries, codes[wiring.CENTRE]))
    return builder.finish(outputs)


def _of_file(rule: RuleFile) -> XAG:
    """Return the graph of a rule file's decision diagram, in which each node selects a child by a cell's state."""
    channels = (rule.states - 1).bit_length()
    builder = Builder(wiring.PATCH * channels)
    literals: list[list[int]] = []
    for depth, children in rule.nodes:
        code = [neighbour(channel, rule.cells[-depth]) for channel in range(channels)]
        below = [[child >> channel & 1 for channel in range(channels)] if depth == 1 else literals[child]
                 for child in children]  # fmt: skip
        literals.append([_chosen(builder, entries, code) for entries in zip(*below, strict=True)])
    return builder.finish(literals[-1])


def _chosen(builder: Builder, entries: Sequence[int | None], code: Sequence[int]) -> int:
    """Build `entries[s]`, bit i of s being `code[i]`; return its literal. None and missing entries are don't cares."""
    if len({*entries} - {None}) <= 1:
        return next((entry for entry in entries if entry is not None), FALSE)
    if len(entries) < 1 << len(code):
        entries = [*entries, *[None] * ((1 << len(code)) - len(entries))]
    *rest, bit = code
    low, high = entries[: len(entries) // 2], entries[len(entries) // 2 :]
    pairs = list(zip(low, high, strict=True))
    for inverted in (0, 1):  # the halves are equal, or opposite
        if all(a is None or b is None or a == b ^ inverted for a, b in pairs):
            joined = [b ^ inverted if a is None and b is not None else a for a, b in pairs]
            literal = _chosen(builder, joined, rest)
            return builder.xor(bit, literal) if inverted else literal
    zero, one = _chosen(builder, low, rest), _chosen(builder, high, rest)
    if {zero, one} & {FALSE, TRUE}:
        return builder.or_(builder.and_(bit, one), builder.and_(bit ^ 1, zero))
    return builder.xor(zero, builder.and_(bit, builder.xor(zero, one)))
