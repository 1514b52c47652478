"""Automata as policies: the border cells of a grid receive an observation, and the inner cells vote for actions.

    T T T T T T      T: a border cell, whose channels initially contain thermometer bits of the observation; clockwise,
    T v v v v T         each cell has the next bits, and the first bit follows the last
    T v v v v T      v: an inner cell, which begins with zeros and finally votes: its channels form equal groups, one
    T v v v v T         group per action
    T v v v v T
    T T T T T T      Each decision is several steps of one rule on a new grid.

A single cell has little influence: damage to a cell removes only its votes and the signals through this cell.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.convert import to_netlist, to_xag
from difflogic.circuits.synthesis.xag import FALSE, Builder, input_literal
from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.policy import PERCEPTION, PolicyConfig
from difflogic.config.train import InitialConfig
from difflogic.core.bits import Bits
from difflogic.devices.device import Device
from difflogic.errors import ConfigError, UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.decision import Gates, decision
from difflogic.model.netlist import NamedNetlist, gate_arrays
from difflogic.policies.actors import Actor, LogicActor
from difflogic.policies.environments import Floats, Spaces
from difflogic.tensor import Tensor


@dataclass(frozen=True)
class ZeroedCells:
    """Damage in each decision of an automaton: `cells` random cells are zeroed before every step or one random step."""

    cells: int
    every_step: bool

    def on(self, actor: Actor) -> None:
        """Damage all later decisions of `actor`. Raises UsageError if it is not an automaton or has too few cells."""
        if not isinstance(actor, AutomatonActor):
            raise UsageError("--damage requires an automaton, but this agent is not one: omit --damage.")
        if not 1 <= self.cells <= actor.side**2:
            raise UsageError(f"--damage must be 1 to {actor.side**2}, the number of cells, got {self.cells}.")
        actor.damage = self

    def __str__(self) -> str:
        return f"{self.cells} cells zeroed {'before each step' if self.every_step else 'once per decision'}"


def votes_of_a_cell(config: PolicyConfig, spaces: Spaces) -> int:
    """Return the number of votes per inner cell and action. Raises ConfigError if channels cannot be split equally."""
    group, rest = divmod(config.automaton.channels, spaces.actions)
    if rest or not group:
        raise ConfigError(
            f"automaton.channels must be a multiple of the number of actions, {spaces.actions}, got "
            f"{config.automaton.channels}."
        )
    return group


class AutomatonActor(LogicActor):
    """Automaton as actor: thermometer bits in the border cells, CA steps, and votes of the inner cells."""

    def _begun(self, config: PolicyConfig, spaces: Spaces, device: Device) -> tuple[Circuit, int, int]:
        shape, group = config.automaton, votes_of_a_cell(config, spaces)
        self.side, self.steps, self.channels = shape.side, shape.steps, shape.channels
        self.damage: ZeroedCells | None = None
        self._chance = np.random.default_rng(config.seed)
        inner = shape.side - 2
        # One product with a matrix, `[cells * channels, actions]`, counts all votes. A border cell has rows of 0. With
        # two actions and four channels, an inner cell has the rows 1 0, 1 0, 0 1 and 0 1.
        within = np.pad(np.ones((inner, inner)), 1)
        votes = np.multiply.outer(within, np.eye(spaces.actions).repeat(group, axis=0))
        matrix = Tensor(votes.reshape(-1, spaces.actions), device)
        self._head = lambda cells: cells.reshape(cells.shape[0], -1) @ matrix
        update = (shape.channels * (1 + shape.kernels * PERCEPTION[-1]), *shape.widths, shape.channels)
        model = ModelConfig(
            channels=shape.channels,
            kernels=shape.kernels,
            perceive=NetworkConfig(PERCEPTION, ("first_kernel",)),
            update=NetworkConfig(update, ("random",) * (len(update) - 1)),
            wiring_per_kernel=True,
            candidates=shape.candidates,
        )
        circuit = Circuit.initial(model, config.seed, InitialConfig(logit=config.gates.start_logit))
        return circuit, shape.steps, inner**2 * group

    @property
    def cell(self) -> CellNetlist:
        """Hard circuit of a cell, as used in evaluations, with all channels visible."""
        return CellNetlist.from_circuit(self.circuit)

    def features(self, observations: npt.NDArray[Any]) -> Floats:
        return self.start(self.thermometer.code(observations)).astype(np.float32)

    def start(self, code: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return initial grids `[N, side, side, C]` for a code `[bits, N]` of thermometer bits or circuit literals."""
        # The border clockwise from a corner, 4 * (side - 1) cells, each side without its last corner. With a side of 4:
        # (0, 0) (0, 1) (0, 2), then (0, 3) (1, 3) (2, 3), then (3, 3) (3, 2) (3, 1), then (3, 0) (2, 0) (1, 0).
        up, last = np.arange(self.side - 1), self.side - 1
        zero, high = np.zeros_like(up), np.full_like(up, last)
        rows, columns = np.concatenate([zero, up, high, last - up]), np.concatenate([up, high, last - up, zero])
        grids = np.zeros((code.shape[1], self.side, self.side, self.channels), dtype=code.dtype)
        # Bits come dimension by dimension, a0 a1 a2 b0 b1 b2, and are laid out as a0 b0 a1 b1 a2 b2: a cell then holds
        # bits of several numbers of the observation. With 4 channels the cells have a0 b0 a1 b1, a2 b2 a0 b0, a1 b1 a2
        # b2, and so on.
        positions = self.thermometer.places
        bits = code[sorted(range(len(code)), key=lambda bit: positions[bit][::-1])]
        places = (np.arange(len(rows))[:, None] * self.channels + np.arange(self.channels)) % len(bits)
        grids[:, rows, columns] = bits[places].transpose(2, 0, 1)
        return grids

    def decided(self, features: Tensor) -> Tensor:
        if self.damage is None:
            return super().decided(features)
        return self._voted(Tensor(self.states(features.numpy())[-1], features.device))

    def states(self, features: Floats) -> Bits:
        """Return the grids of N decisions before and after every step, uint8 `[steps + 1, N, side, side, C]`."""
        cell, state = self.cell, features.astype(np.uint8)
        states, when = [state], self._chance.integers(0, self.steps, len(state))
        for step in range(self.steps):
            if self.damage is not None:
                # argsort of random numbers is a random order of 0, 1, 2, ...: `cells` of the entries are below `cells`.
                hit = self._chance.random((len(state), self.side**2)).argsort(axis=1) < self.damage.cells
                hit &= self.damage.every_step | (when == step)[:, None]
                state = np.where(hit.reshape(*state.shape[:3], 1), np.uint8(0), state)
            (state,) = cell.steps(state, 1)
            states.append(state)
        return np.stack(states)

    def decision(self) -> Gates:
        # All cells and steps become one circuit. The builder omits gates that are constant or exist already: in the
        # first steps, cells far from the border read only constants, and add no gates.
        bits, cell = self.thermometer.bits, to_xag(self.cell)
        builder = Builder(bits)
        # The layout is that of training, with literals in place of bits. Empty cells are 0, which is the literal FALSE.
        grid = self.start(np.array([[input_literal(bit)] for bit in range(bits)]))[0]
        for _ in range(self.steps):
            padded = np.pad(grid, ((1, 1), (1, 1), (0, 0)), constant_values=FALSE)
            # `[H, W, C, 3, 3]`, so that a flat patch is in the order of the cell's inputs, 9 * channel + place.
            patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
            grid = np.array([[builder.embed(cell, patch.reshape(-1).tolist()) for patch in row] for row in patches])
        # Sort votes by channel, since `decision` expects the votes for an action next to each other.
        voters = grid[1:-1, 1:-1].reshape(-1, self.channels).T.reshape(-1).tolist()
        counted = _named(len(voters), *decision(len(voters), [], self._actions))
        outputs = builder.embed(to_xag(counted), voters)
        netlist = to_netlist(builder.finish(outputs), _named(bits, [], [], [0] * len(outputs)))
        return netlist.gates.tolist(), [(a, b) for a, b in netlist.wires.tolist()], netlist.outputs.tolist()


def _named(inputs: int, gates: list[int], wires: list[tuple[int, int]], outputs: list[int]) -> NamedNetlist:
    names = [tuple(f"{letter}{k}" for k in range(count)) for letter, count in (("i", inputs), ("o", len(outputs)))]
    return NamedNetlist(named_inputs=names[0], named_outputs=names[1], **gate_arrays(gates, wires, outputs))
