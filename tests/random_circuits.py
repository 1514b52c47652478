"""Circuits, grids and masks that no one designed."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from difflogic.core import prng, wiring
from difflogic.model.circuit import Circuit


def random_circuit(
    rng: np.random.Generator,
    channels: int = 2,
    kernels: int = 2,
    perceive: tuple[int, ...] = (8, 4, 2),
    hidden: tuple[int, ...] = (7, 5),
    periodic: bool = False,
    per_kernel: bool = False,
    scale: float = 2.0,
    dtype: npt.DTypeLike = np.float32,
    trees: bool = False,
    unique: bool = False,
    neighbourhood: str = "moore",
    candidates: int = 1,
) -> Circuit:
    """Layers of the given numbers of gates, wired and weighted at random; the last layer has C gates.

    `trees`: perception is wired as the paper's is, a neighbour with the cell itself, then pairs. `unique`: so is the
    update network.
    """
    lead = (kernels,) if per_kernel else ()
    cells = np.array(wiring.NEIGHBOURHOODS[neighbourhood])
    update = (*hidden, channels)
    perceive_inputs = (9, *perceive)
    update_inputs = (channels + channels * kernels * perceive[-1], *update)

    def logits(*shape: int) -> np.ndarray:
        return (scale * rng.standard_normal((*shape, 16))).astype(dtype)

    def wired(layer: int, n_in: int, n_out: int) -> np.ndarray:
        if not trees and layer == 0:
            return cells[rng.integers(0, len(cells), (*lead, 2, n_out))]
        if not trees:
            return rng.integers(0, n_in, (*lead, 2, n_out))
        scheme = "unique" if layer else "first_kernel"
        keys = [prng.key_from_seed(int(rng.integers(0, 2**32))) for _ in range(kernels if per_kernel else 1)]
        made = np.stack([wiring.make_wires(scheme, key, n_in, n_out, None if layer else cells) for key in keys])
        return made if per_kernel else made[0]

    def updated(n_in: int, n_out: int) -> np.ndarray:
        if not unique:
            return rng.integers(0, n_in, (2, n_out))
        return wiring.make_wires("unique", prng.key_from_seed(int(rng.integers(0, 2**32))), n_in, n_out)

    logits_of = {"perceive": [logits(kernels, n) for n in perceive], "update": [logits(n) for n in update]}
    perceive_layers = enumerate(zip(perceive_inputs, perceive, strict=False))
    wires_of = {
        "perceive": [wired(layer, n_in, n) for layer, (n_in, n) in perceive_layers],
        "update": [updated(n_in, n) for n_in, n in zip(update_inputs, update, strict=False)],
    }
    circuit = Circuit.from_arrays(logits_of, wires_of, channels, periodic, neighbourhood=neighbourhood)
    circuit = circuit.with_candidates(candidates, seed=5)
    if circuit.wire_logits is None:
        return circuit
    noise = scale * rng.standard_normal(circuit.wire_logits.shape)
    return replace(circuit, wire_logits=(circuit.wire_logits + noise).astype(dtype))


def bits(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    return rng.integers(0, 2, shape).astype(np.float32)


@st.composite
def circuits(draw: st.DrawFn, candidates: tuple[int, ...] = (1,)) -> Circuit:
    """C 1..4, K 1..3, one to three layers in each network, shared or own wiring, either boundary, any neighbourhood."""
    return random_circuit(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        channels=draw(st.integers(1, 4)),
        kernels=draw(st.integers(1, 3)),
        perceive=tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))),
        hidden=tuple(draw(st.lists(st.integers(1, 9), max_size=2))),
        periodic=draw(st.booleans()),
        per_kernel=draw(st.booleans()),
        neighbourhood=draw(st.sampled_from(list(wiring.NEIGHBOURHOODS))),
        candidates=draw(st.sampled_from(candidates)),
    )
