"""Soft circuits: the logits and wires of a perception and an update network.

In a CA step of a cell, each of K perception kernels maps the 3x3 patch of each channel to S values. A kernel uses the
same logits for all channels. The update network reads the C values of the cell itself, then the results of perception:
`out[k,c,s]` is input `C + (c*S + s)*K + k`. Its output is the next state of the cell. Source: the authors' notebook,
`run_perceive` and `run_update`.

A circuit without perception is *feed-forward*: its update network reads only the C values of the cell itself, and its
outputs are the gates of the last layer. Such a circuit is a layer of a network, a classifier or a policy.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.train import InitialConfig
from difflogic.core import gates, prng, wiring
from difflogic.errors import CircuitError
from difflogic.model.checked import WIRES, network, wire_logits
from difflogic.model.framed import in_frame

NETWORKS = ("perceive", "update")

NOISE_STREAM = 0x6E6F6973
"""Constant ("nois") that `fold_in` mixes into the key of the seed to sample the noise of initial logits."""

WIRE_SHARE = 0.88
"""Initial probability of a wire's first candidate, its input in the fixed wiring, if its candidates are distinct."""
FIXED = 1e6
"""Logit of a gate function or candidate that is always chosen; `-FIXED` is the logit of one that is never chosen.

Weight decay reduces this logit in each epoch, but too little to have an effect."""

PAPER_START = InitialConfig()
"""Initial logits of the authors' notebook."""

Array = npt.NDArray[Any]
ArraysByNetwork = dict[str, list[Array]]


@dataclass(frozen=True, eq=False)
class Circuit:
    """Soft gates and their wiring, which engines evaluate and train; training changes only the logits.

    `perceive[l]`, float `[K, out, 16]`, are the logits of layer l of the K perception kernels. `update[l]`, float
    `[out, 16]`, are the logits of layer l of the update network. `perceive_wires[l]`, int `[K, 2, out]`, and
    `update_wires[l]`, int `[2, out]`, are the indices of the gates' inputs. With k candidates for each wire, wires have
    an additional last axis, `[..., out, k]`. `from_arrays`, `initial` and `feed_forward` make validated circuits.

        >>> config = difflogic.presets.checkerboard(small=True)
        >>> circuit = difflogic.Circuit.initial(config.model, seed=23)
        >>> circuit.flat_logits().shape
        (1496, 16)
    """

    perceive: tuple[Array, ...]
    update: tuple[Array, ...]
    perceive_wires: tuple[Array, ...]
    update_wires: tuple[Array, ...]
    channels: int
    periodic: bool
    neighbourhood: str = "moore"
    """Key of `wiring.NEIGHBOURHOODS`, which lists the cells of a patch that the first perception layer may read."""
    wire_logits: Array | None = None
    """Logits of candidate wires, float `[G, 2, k]`, in the order of gates in `flat_logits`; None if wiring is fixed."""

    @classmethod
    def from_arrays(
        cls,
        logits: Mapping[str, Sequence[npt.ArrayLike]],
        wires: Mapping[str, Sequence[npt.ArrayLike]],
        channels: int,
        periodic: bool = False,
        neighbourhood: str = "moore",
    ) -> Circuit:
        """Make a circuit from plain arrays, and validate it.

        Args:
            logits: `{"perceive": [[K, out, 16], ...], "update": [[out, 16], ...]}`, float32 or float64. With
                candidates also `"wires": [[G, 2, k]]`. If both `perceive` lists are empty, the circuit is feed-forward.
            wires: Indices of gates' inputs by network and layer, ints `[2, out]` (shared by all perception kernels) or
                `[K, 2, out]`; with k candidates `[2, out, k]` or `[K, 2, out, k]`.
            channels: Number of channels of a cell, C.
            periodic: True for a torus; False if border cells read 0 outside the grid.
            neighbourhood: Name of the neighbourhood: `moore`, `von-neumann`, `hex` or `line`.

        Returns:
            The circuit.

        Raises:
            CircuitError: A shape is wrong, logits are not finite, or wires are out of range or outside the
            neighbourhood.
        """
        for name, tables in (("logits", logits), ("wires", wires)):
            if set(tables) - {WIRES} != set(NETWORKS):
                raise CircuitError(f'{name} must have the keys "perceive" and "update", got {sorted(tables)}.')
        if channels < 1:
            raise CircuitError(f"channels must be at least 1, got {channels}.")
        chosen = wire_logits(logits)
        tail = () if chosen is None else chosen.shape[2:]
        if len(logits["perceive"]) == len(wires["perceive"]) == 0:
            update, update_wires = network("update", logits["update"], wires["update"], channels, None, tail)
            return cls((), update, (), update_wires, channels, periodic, wire_logits=chosen)
        perceive, perceive_wires = network("perceive", logits["perceive"], wires["perceive"], wiring.PATCH, None, tail)
        kernels, outputs = perceive[-1].shape[:2]
        update_inputs = channels + channels * outputs * kernels
        update, update_wires = network("update", logits["update"], wires["update"], update_inputs, channels, tail)
        circuit = cls(perceive, update, perceive_wires, update_wires, channels, periodic, wire_logits=chosen)
        return circuit.within(neighbourhood)

    def within(self, neighbourhood: str) -> Circuit:
        """Return a copy with another neighbourhood. Raise CircuitError if the circuit reads cells outside it."""
        wiring.check_within(neighbourhood, np.unique(self.perceive_wires[0]).tolist() if self.perceive else ())
        return replace(self, neighbourhood=neighbourhood)

    @classmethod
    def initial(cls, model: ModelConfig, seed: int, initial: InitialConfig = PAPER_START) -> Circuit:
        """Make the initial circuit of a training run: wires are sampled, and gates pass on their first inputs.

        The random numbers are those of the authors' notebook: `key, sub = split(PRNGKey(seed))`, where `sub` samples
        first the update network, then perception.

        Args:
            model: Layers, kernels, channels and wiring schemes.
            seed: Seed of the wiring.
            initial: Initial logits of the pass-through functions, and the noise added to all logits.

        Returns:
            The circuit.
        """
        # Split keys in the same order as the notebook, so that a seed gives the same circuit.
        _, sub = prng.split(prng.key_from_seed(seed))
        key, update_key = prng.split(sub)
        key, perceive_key = prng.split(key)
        update_wires = _draw(model.update, update_key)
        cells = wiring.NEIGHBOURHOODS[model.neighbourhood]
        if model.wiring_per_kernel:
            per_kernel = [_draw(model.perceive, k, cells) for k in prng.split(perceive_key, model.kernels)]
            perceive_wires = [np.stack(layer) for layer in zip(*per_kernel, strict=True)]
        else:
            perceive_wires = _draw(model.perceive, perceive_key, cells)
        start = _start(initial.logit)
        perceive = [np.tile(start, (model.kernels, n, 1)) for n in model.perceive.widths[1:]]
        if model.all_round:
            key = prng.fold_in(perceive_key, wiring.ALL_ROUND_STREAM)
            wiring.begin_all_round(perceive, perceive_wires, key, model.neighbourhood)
            wiring.lead_straight(update_wires, model.channels, model.update.widths[0] // model.channels - 1)
        update = _update_start(model.update.widths[1:], initial)
        _hold(model.held, update, update_wires)
        logits, wires = {"perceive": perceive, "update": update}, {"perceive": perceive_wires, "update": update_wires}
        circuit = cls.from_arrays(logits, wires, model.channels, model.periodic, model.neighbourhood)
        return circuit.with_candidates(model.candidates, seed)._with_noise(initial, seed, model.input_wise)

    @classmethod
    def feed_forward(
        cls, widths: Sequence[int], seed: int, initial: InitialConfig = PAPER_START, candidates: int = 1
    ) -> Circuit:
        """Make a circuit without perception, for example as a layer of a custom network.

        Wires are sampled so that all inputs of a layer are read about equally often.

            >>> difflogic.Circuit.feed_forward([28, 32, 32], seed=0).outputs
            32

        Args:
            widths: Number of inputs, then number of gates of each layer. The last layer gives the outputs.
            seed: Seed of the wiring.
            initial: Initial logits of the pass-through functions, and the noise added to all logits.
            candidates: Number of candidates for each wire: 1 (fixed wiring), 2, 4, 8 or 16.

        Returns:
            The circuit.

        Raises:
            CircuitError: There are fewer than two widths, a width is below 1, or `candidates` is unsupported.
        """
        if len(widths) < 2 or min(widths) < 1:
            raise CircuitError(
                f"widths must be the number of inputs, then the number of gates of each layer, got {list(widths)}."
            )
        key, wires = prng.key_from_seed(seed), []
        for n_in, n_out in itertools.pairwise(widths):
            key, sub = prng.split(key)
            wires.append(wiring.random(sub, n_in, n_out))
        logits = _update_start(widths[1:], initial)
        circuit = cls.from_arrays({"perceive": [], "update": logits}, {"perceive": [], "update": wires}, widths[0])
        return circuit.with_candidates(candidates, seed)._with_noise(initial, seed)

    def with_candidates(self, count: int, seed: int) -> Circuit:
        """Return a copy with `count` candidates for each wire: its present input, then inputs sampled with `seed`."""
        if count == 1:
            return self
        if count not in wiring.CANDIDATES:
            raise CircuitError(f"candidates must be one of {', '.join(map(str, wiring.CANDIDATES))}, got {count}.")
        # A separate random stream, so that candidates change neither the first wires nor the noise.
        key, all_wires, logits = prng.fold_in(prng.key_from_seed(seed), wiring.CANDIDATE_STREAM), self.wires, []
        width = self.channels * (1 + self.kernels * self.perceive[-1].shape[1] if self.perceive else 1)
        cells = wiring.NEIGHBOURHOODS[self.neighbourhood]
        reads: dict[str, Sequence[int]] = {"perceive": cells, "update": range(width)}
        for name, layers in all_wires.items():
            inputs = reads[name]
            for number, (wires, gate_logits) in enumerate(zip(layers, self.logits[name], strict=True)):
                key, sub = prng.split(key)
                kernels = wires.reshape(-1, *wires.shape[-2:])
                # Kernels that share their wiring share its candidates.
                keys = [prng.fold_in(sub, 0 if (pairs == kernels[0]).all() else k) for k, pairs in enumerate(kernels)]
                choices = [wiring.candidates(k, pairs, count, inputs) for k, pairs in zip(keys, kernels, strict=True)]
                layers[number] = np.stack(choices).reshape(*wires.shape, count)
                start = np.where(wiring.repeated(layers[number]), -FIXED, 0.0).swapaxes(-3, -2)  # [..., out, 2, k]
                # A gate that does not learn keeps its inputs.
                is_fixed = gate_logits[..., gates.PASS_THROUGH] == FIXED
                begins = np.log((count - 1) * WIRE_SHARE / (1 - WIRE_SHARE))
                start[..., 0] = np.where(is_fixed, FIXED, begins)[..., None]
                logits.append(start.reshape(-1, 2, count))
                inputs = range(wires.shape[-1])
        arrays = self.logits | {WIRES: [np.concatenate(logits).astype(self.update[0].dtype)]}
        return self.from_arrays(arrays, all_wires, self.channels, self.periodic, self.neighbourhood)

    def _with_noise(self, initial: InitialConfig, seed: int, input_wise: bool = False) -> Circuit:
        logits, sums = self.gate_logits, np.eye(gates.GATE_COUNT, dtype=np.float32)
        if input_wise:
            # An input-wise gate that begins as A with logit 6 has the parameters -6, -6, 6 and 6: the logit of A is 12,
            # and the logit of a function that differs from A in one row is 6. The factor 1/2 preserves the standard
            # deviation of noise.
            sums = (gates.INPUT_WISE @ gates.INPUT_WISE.T / 2).astype(np.float32)
            logits = 4 * logits @ sums
        if initial.noise:
            # A separate random stream, so that noise changes no wire.
            key = prng.fold_in(prng.key_from_seed(seed), NOISE_STREAM)
            noise = prng.normal(key, (self.gates, gates.GATE_COUNT))
            logits = logits + np.float32(initial.noise) * (noise @ sums)
        return self.with_gate_logits(logits)

    def __repr__(self) -> str:
        if not self.perceive:
            return f"<Circuit of {self.gates} gates, {self.channels} inputs, {self.outputs} outputs>"
        outside = "periodic" if self.periodic else "zero"
        return f"<Circuit of {self.gates} gates, {self.kernels} kernels, {self.channels} channels, {outside} boundary>"

    _repr_html_ = in_frame

    @property
    def kernels(self) -> int:
        """Number of perception kernels, K; 0 without perception."""
        return int(self.perceive[0].shape[0]) if self.perceive else 0

    @property
    def outputs(self) -> int:
        """Number of outputs, which are the gates of the last layer; for an automaton, the number of channels."""
        return int(self.update[-1].shape[0])

    @property
    def patch(self) -> int:
        """Number of values that a cell reads per channel: 9, or 1 without perception."""
        return wiring.PATCH if self.perceive else 1

    def require_automaton(self) -> None:
        """Raise CircuitError if the circuit is feed-forward."""
        if not self.perceive:
            raise CircuitError(
                f"Expected an automaton, got a feed-forward circuit with {self.channels} inputs and {self.outputs} "
                "outputs: evaluate it with Engine.open_function."
            )

    @property
    def gates(self) -> int:
        """Number of soft gates, G; a perception gate counts once per kernel, although all channels use it."""
        return sum(layer.size for layer in (*self.perceive, *self.update)) // gates.GATE_COUNT

    @property
    def candidates(self) -> int:
        """Number of candidates for each wire, k; 1 if wiring is fixed."""
        return 1 if self.wire_logits is None else int(self.wire_logits.shape[-1])

    @property
    def parameters(self) -> int:
        """Number of rows of `flat_logits`, P: one per gate, and with k candidates `2 * k * G / 16`, rounded up."""
        return self.gates + (0 if self.wire_logits is None else wiring.rows(self.wire_logits).shape[0])

    @cached_property
    def chosen(self) -> Circuit:
        """Circuit in which each wire is fixed to its most probable candidate; `self` if wiring is already fixed."""
        if self.wire_logits is None:
            return self
        best, wires = self.wire_logits.argmax(axis=-1), self.wires
        for layers in wires.values():
            for number, layer in enumerate(layers):
                count = layer.size // (2 * self.candidates)
                picks, best = np.split(best, [count])
                places = picks.reshape(*layer.shape[:-3], -1, 2).swapaxes(-2, -1)
                layers[number] = np.take_along_axis(layer, places[..., None], axis=-1)[..., 0]
        perceive, update = map(tuple, wires.values())
        return replace(self, wire_logits=None, perceive_wires=perceive, update_wires=update)

    @property
    def logits(self) -> ArraysByNetwork:
        """Logits by network and layer, in the form that `from_arrays` expects."""
        logits = {"perceive": list(self.perceive), "update": list(self.update)}
        return logits if self.wire_logits is None else logits | {WIRES: [self.wire_logits]}

    @property
    def wires(self) -> ArraysByNetwork:
        """Wires by network and layer, in the form that `from_arrays` expects; `[K, 2, out]` for perception."""
        return {"perceive": list(self.perceive_wires), "update": list(self.update_wires)}

    def flat_logits(self) -> Array:
        """Return all logits, `[P, 16]`: perception layers (by kernel, then gate), update layers, then candidate wires.

        The logits of candidate wires are in the order of their gates; zeros pad the last row.
        """
        rows = [] if self.wire_logits is None else [wiring.rows(self.wire_logits)]
        return np.concatenate([self.gate_logits, *rows])

    @property
    def gate_logits(self) -> Array:
        """Logits of the gates, `[G, 16]`: the first rows of `flat_logits`."""
        return np.concatenate([layer.reshape(-1, gates.GATE_COUNT) for layer in (*self.perceive, *self.update)])

    def unflatten(self, flat: Array) -> ArraysByNetwork:
        """Split flat logits or gradients `[P, 16]` into arrays in the shapes of `logits`: inverse of `flat_logits`."""
        layers, count = (*self.perceive, *self.update), len(self.perceive)
        *parts, wire_rows = np.split(np.asarray(flat), np.cumsum([layer.size // gates.GATE_COUNT for layer in layers]))
        shaped = [part.reshape(layer.shape) for part, layer in zip(parts, layers, strict=True)]
        arrays = {"perceive": shaped[:count], "update": shaped[count:]}
        if self.wire_logits is not None:
            arrays[WIRES] = [wire_rows.reshape(-1)[: self.wire_logits.size].reshape(self.wire_logits.shape)]
        return arrays

    def with_logits(self, flat: Array) -> Circuit:
        """Return a copy with the logits `flat [P, 16]`, in the order of `flat_logits`."""
        arrays = self.unflatten(flat)
        wires = arrays.get(WIRES, [None])[0]
        return replace(self, perceive=tuple(arrays["perceive"]), update=tuple(arrays["update"]), wire_logits=wires)

    def with_gate_logits(self, logits: Array) -> Circuit:
        """Return a copy with the gate logits `logits [G, 16]`; logits of candidate wires stay the same."""
        return self.with_logits(np.concatenate([logits, self.flat_logits()[self.gates :]]))


def _start(logit: float) -> Array:
    """Return the initial logits of a gate, `[16]`: `logit` for the pass-through function A, 0 for all others."""
    # With a logit of 10 and fifteen zeros the probability is 0.9993: all gates begin as wires, through which gradients
    # pass almost unchanged at any depth.
    start = np.zeros(gates.GATE_COUNT, dtype=np.float32)
    start[gates.PASS_THROUGH] = logit
    return start


def _update_start(widths: Sequence[int], initial: InitialConfig) -> list[Array]:
    """Return the initial logits of update layers with `widths` gates, lower in layers narrower than the first."""
    wide, narrow = _start(initial.logit), _start(initial.logit - initial.narrow_drop)
    return [np.tile(narrow if n < widths[0] else wide, (n, 1)) for n in widths]


def _hold(channels: Sequence[int], logits: Sequence[Array], wires: Sequence[Array]) -> None:
    """Make an update network copy `channels` of a cell to its next state by one fixed gate per channel and layer.

    Changes `logits[l]`, float `[out, 16]`, and `wires[l]`, int `[2, out]`, in place. The k-th channel in the list uses
    the k-th gate from the end, except in the last layer, where it uses the gate of the channel itself.
    """
    # With fixed channels 1 and 2 of 8, and layers of 32, 32 and 8 gates:
    #     channel 1 -> gate 31 -> gate 31 -> gate 1        channel 2 -> gate 30 -> gate 30 -> gate 2
    for number, channel in enumerate(channels):
        read = channel
        for layer, pair in zip(logits, wires, strict=True):
            gate = channel if layer is logits[-1] else len(layer) - 1 - number
            pair[:, gate], read = read, gate
            # The probability of any other function is exp(-FIXED), 0 in float32. So the gradients of the logits are
            # 0 too: training does not change the logits, without a special case in any engine.
            layer[gate, gates.PASS_THROUGH] = FIXED


def _draw(network: NetworkConfig, key: prng.Key, among: Sequence[int] | None = None) -> list[Array]:
    """Sample a network's wires, with one subkey per layer; the first layer reads only inputs `among` (default: all)."""
    layers: list[Array] = []
    for scheme, n_in, n_out in zip(network.connections, network.widths, network.widths[1:], strict=False):
        key, sub = prng.split(key)
        layers.append(wiring.make_wires(scheme, sub, n_in, n_out, None if layers else among))
    return layers
