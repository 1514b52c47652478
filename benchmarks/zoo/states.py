"""Circuits without a claim in proof.json: rules of several states, learned from recordings, and four images.

NumPy verifies their circuit.json without difflogic.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.films import SIDES, Rule, States, _around, cyclic, generations, lattice_gas, stepped, wireworld
from difflogic.circuits import rle
from difflogic.core import text_picture
from difflogic.model.cell_netlist import CellNetlist
from examples.tasks.difflogic_tasks.suits import SUITS

SIDE = 32
"""Side of the random initial state on which a rule is shown."""
MOST = 1 << 24
"""Maximum number of neighbourhoods; if a rule has more, its circuit must not read corners, which then stay 0."""
CHUNK = 1 << 16
STEPS = 30
PLUS = (1, 3, 4, 5, 7)
"""Places of a cell and its four side neighbours in a patch of nine cells."""


def sandpile() -> Rule:
    """Return the sandpile rule: a cell with at least four grains gives one to each side; a cell has at most seven."""

    def step(now: States) -> Any:
        return np.where(now > 3, now - 4, now) + (_around(now, SIDES) > 3).sum(axis=0)

    return Rule("abelian sandpile", 8, step)


EVERY = set(range(1, 9))
RULES = {
    # This rule has two states. Training by `--rule` failed: 22 attempts from seed 23 left 54 mismatches or more.
    "anneal": generations(2, {4, 6, 7, 8}, {3, 5, 6, 7, 8}),
    "brians-brain": generations(3, {2}, set()),
    "brain-6": generations(3, {2, 4, 6}, {6}),
    "frogs": generations(3, {3, 4}, {1, 2}),
    "greenberg-hastings": generations(3, EVERY, set()),
    "star-wars": generations(4, {2}, {3, 4, 5}),
    "orthogo": generations(4, {2}, {3}),
    "caterpillars": generations(4, {3, 7, 8}, {1, 2, 4, 5, 6, 7}),
    "banners": generations(5, {3, 4, 5, 7}, {2, 3, 6, 7}),
    "wireworld": wireworld(),
    "lattice-gas": lattice_gas(),
    "313": cyclic(3, 3, moore=True),
    "perfect-spirals": cyclic(4, 3, moore=True),
    "imperfect-spirals": cyclic(4, 2, moore=True),
    "cyclic-space": cyclic(14, 1, moore=False),
    "sandpile": sandpile(),
}
"""Rules by their usual names; the names of cyclic rules and Generations are those in MCell and Golly."""


def film(name: str, seed: int) -> tuple[States, States]:
    """Return the samples `x, y` of a rule: pairs of frames for `difflogic train --data`."""
    return RULES[name].film(np.random.default_rng(seed))


def neighbourhoods(rule: Rule) -> Iterator[States]:
    """Yield all neighbourhoods of a rule, or those with corners in state 0 if there are over MOST, as `[n, 3, 3]`."""
    cells = range(9) if rule.states**9 <= MOST else PLUS
    counts = np.arange(rule.states ** len(cells))
    for part in np.array_split(counts, -(-len(counts) // CHUNK)):
        grids = np.zeros((len(part), 9), dtype=np.uint8)
        for place, cell in enumerate(cells):
            grids[:, cell] = part // rule.states**place % rule.states
        yield grids.reshape(-1, 3, 3)


def proved(rule: Rule, circuit: dict[str, Any]) -> str:
    """Compare circuit.json with the rule on all neighbourhoods; return the proof as text. Raises AssertionError."""
    count = 0
    assert len(circuit["outputs"]) == rule.channels
    assert circuit["periodic"]
    if rule.states**9 > MOST:
        read = {each[side] for each in circuit["gates"] for side in "ab"} | set(circuit["outputs"])
        corners = {f"in[{channel}][{cell}]" for channel, cell in product(range(rule.channels), (0, 2, 6, 8))}
        assert not read & corners, f"{rule.name} reads corners: {sorted(read & corners)}"
    for grids in neighbourhoods(rule):
        # The nine cells of a 3x3 torus are the neighbourhood of the centre cell.
        after, expected = stepped(circuit, rule.bits(grids))[:, 1, 1], rule.bits(rule.step(grids))[:, 1, 1]
        wrong = int((after != expected).any(axis=-1).sum())
        assert not wrong, f"{rule.name}: {wrong} of {len(grids)} neighbourhoods are wrong"
        count += len(grids)
    return (
        f"On every grid of states 0 to {rule.states - 1}, each step is one generation of the rule: all {count} "
        "neighbourhoods were compared by NumPy."
    )


def scenario(name: str, seed: int) -> dict[str, Any]:
    """Return a random initial state with equally frequent states; random bits may not encode a state of the rule."""
    rule = RULES[name]
    soup = np.random.default_rng(seed).integers(rule.states, size=(SIDE, SIDE)).astype(np.uint8)
    rows = text_picture.encode(rule.bits(soup))
    return {"start": "picture", "height": SIDE, "width": SIDE, "steps": STEPS, "picture": rows}


def suits(circuit: dict[str, Any], steps: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Verify the circuit of four images by NumPy; return its description and its scenario."""
    height, width = len(SUITS[0]), len(SUITS[0][0])
    wanted = np.stack([text_picture.decode(rows, 1)[..., 0] for rows in SUITS])
    state = _codes(circuit.get("origin", list(range(circuit["channels"]))))
    for _ in range(steps):
        state = stepped(circuit, state)
    wrong = (state[..., 0] != wanted).sum(axis=(1, 2)).tolist()
    assert not any(wrong), f"wrong cells of the four pictures: {wrong}"
    # A state with only channel 1 set has the number 2, the spade.
    habitat = {"start": "picture", "height": height, "width": width, "steps": steps, "picture": ["2" * width] * height}
    said = {
        "does": f"four images of {width}x{height} cells, selected by two bits of each cell",
        "text": f"Run by NumPy, each of the four is right at step {steps}: a heart, a diamond, a spade and a club.",
    }
    return said, habitat


def _codes(origin: list[int]) -> States:
    """Return the four initial states `[4, H, W, C]`: channels 1 and 2 number the image, the higher bit first."""
    start = np.zeros((4, len(SUITS[0]), len(SUITS[0][0]), len(origin)), dtype=np.uint8)
    start[..., origin.index(1)] = np.array([0, 0, 1, 1])[:, None, None]
    start[..., origin.index(2)] = np.array([0, 1, 0, 1])[:, None, None]
    return start


def picture(name: str, netlist: CellNetlist) -> Image.Image:
    """Return the image of the last state of a rule, with a colour per state, or of the four images."""
    assert netlist.scenario is not None
    if name == "suits":
        one, two, three, four = 255 * netlist.rollout(_codes(list(netlist.origin)), netlist.scenario.steps)[-1, ..., 0]
        return Image.fromarray(np.concatenate([np.hstack([one, two]), np.hstack([three, four])])).convert("RGB")
    start = netlist.scenario.grid(netlist.origin)
    assert start is not None
    (bits,) = netlist.rollout(start[None], netlist.scenario.steps)[-1]
    if netlist.colours:
        return Image.fromarray(netlist.palette[rle.numbers(bits)])
    others = RULES[name].states - 1
    colours = [(0, 0, 0), *(colorsys.hsv_to_rgb(each / others, 0.8, 1) for each in range(others))]
    return Image.fromarray((255 * np.array(colours)[bits @ (1 << np.arange(bits.shape[-1]))]).astype(np.uint8))
