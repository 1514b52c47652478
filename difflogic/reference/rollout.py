"""Complete rollouts and backward passes, composed of the kernels of single steps."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from difflogic.core.wiring import PATCH
from difflogic.engine.events import Faults
from difflogic.engine.shape import Array, Shape
from difflogic.errors import DataError
from difflogic.model.layout import Layout
from difflogic.reference.kernels.coefficients import Parameters, softmax
from difflogic.reference.kernels.coefficients import coefficients as soft_coefficients
from difflogic.reference.kernels.d_damage import d_damage
from difflogic.reference.kernels.d_faults import d_faults
from difflogic.reference.kernels.damage import damage
from difflogic.reference.kernels.faults import faults
from difflogic.reference.kernels.gate_backward import gate_backward
from difflogic.reference.kernels.gate_forward import gate_forward
from difflogic.reference.kernels.gradients import gradients as logit_gradients
from difflogic.reference.kernels.hard_damage import hard_damage
from difflogic.reference.kernels.hard_faults import hard_faults
from difflogic.reference.kernels.hard_forward import hard_forward
from difflogic.reference.kernels.loss import errors
from difflogic.reference.kernels.loss import loss as squared_error
from difflogic.reference.kernels.step_loss import step_loss
from difflogic.reference.kernels.step_loss_backward import step_loss_backward


@dataclass(frozen=True, eq=False)
class RolloutSpec:
    """Specification of a rollout: its sizes, fire masks, damage, hardened gates and faults."""

    shape: Shape
    layout: Layout
    masks: Array | None = None
    """Fire masks `[T, H*W]`, see `fire_mask`; None if all cells fire in every step."""
    corners: Array | None = None
    """Corners of damage squares `[D, B, 2]`, see `damage`; None without damage steps."""
    hardened: Parameters | None = None
    """Parameters if some gates are hard or stuck in this epoch, see `harden`; None to compute them from the logits."""
    faults: Faults | None = None
    """Faults of states, see `faults`; None without faults."""

    @property
    def squares(self) -> Array:
        """Corners of the damage squares. Raises DataError if there are none."""
        if self.corners is None:
            raise DataError("Expected corners of the damage squares for a task with damage, got None.")
        return self.corners


def cells_last(grids: Array) -> Array:
    """Rearrange `[..., B, H, W, C]` to a contiguous array `[..., C, cells]`."""
    return np.ascontiguousarray(np.moveaxis(grids, -1, -4).reshape(*grids.shape[:-4], grids.shape[-1], -1))


def parameters_of(layout: Layout, logits: Array) -> tuple[Parameters, Array]:
    """Return the soft parameters for `logits [P, 16]`, and the ids `[G]` of the most probable functions."""
    coefficients = np.empty((layout.gates, 4), dtype=logits.dtype)
    gate_ids = np.empty(layout.gates, dtype=np.uint32)
    soft_coefficients(logits[: layout.gates], coefficients, gate_ids)
    candidates = layout.wire_logits(logits)
    return Parameters(coefficients, None if candidates is None else softmax(candidates)), gate_ids


def soft_rollout(spec: RolloutSpec, logits: Array, start: Array) -> Array:
    """Return all states `[T+1, C, cells]` of a rollout from `start [C, cells]`, each after its damage."""
    return run_steps(spec, parameters_of(spec.layout, logits)[0], start)[0]


def run_steps(
    spec: RolloutSpec,
    parameters: Parameters,
    start: Array,
    nodes: Array | None = None,
    targets: Array | None = None,
    loss_partials: Array | None = None,
) -> tuple[Array, Array]:
    """Return the states `[T+1, C, cells]`, and the adjoints `[J-1, loss_channels, cells]` of all losses but the last.

    If not None, `nodes [T, N, cells]` receive all node values, and `loss_partials [J, cells]` all losses but the last.
    """
    shape, layout = spec.shape, spec.layout
    # A feed-forward circuit may have more outputs than inputs, or fewer: its two states have the rows of the wider one.
    rows = max(shape.channels, layout.outputs)
    states = np.empty((shape.steps + 1, rows, shape.cells), dtype=start.dtype)
    states[0, : shape.channels] = start
    d_judged = np.empty((len(shape.judged_steps) - 1, shape.loss_channels, shape.cells), dtype=start.dtype)
    scratch = np.empty((layout.nodes if nodes is None else 0, shape.cells), dtype=start.dtype)
    for step in range(shape.steps):
        # The loss of a state is that before its damage; the next step reads it after its damage.
        if targets is not None and loss_partials is not None and step in shape.judged_steps:
            step_loss(shape, shape.judged_steps.index(step), states[step], targets, d_judged, loss_partials)
        if step in shape.damage_steps:
            damage(shape, shape.damage_steps.index(step), spec.squares, states[step])
        if spec.faults is not None:
            faults(shape, step, spec.faults.key, spec.faults.listed, states[step])
        into = scratch if nodes is None else nodes[step]
        state, next_state = states[step, : shape.channels], states[step + 1, : layout.outputs]
        gate_forward(shape, step, layout, parameters, spec.masks, state, next_state, into)
    return states, d_judged


def soft_losses(spec: RolloutSpec, logits: Array, start: Array, targets: Array) -> Array:
    """Return each cell's loss after each evaluated step, `[J, cells]`, without gradients; `targets` as in `loss`."""
    shape = spec.shape
    partials = np.empty((len(shape.judged_steps), shape.cells), dtype=start.dtype)
    states, _ = run_steps(spec, parameters_of(spec.layout, logits)[0], start, None, targets, partials)
    partials[-1] = np.sum(errors(shape, states[-1], targets[-1]) ** 2, axis=0)
    return partials


@dataclass(frozen=True, eq=False)
class SoftPass:
    """Results of a forward and backward pass."""

    states: Array
    """States `[T+1, C, cells]`."""
    loss_partials: Array
    """Loss of each cell after each evaluated step, `[J, cells]`."""
    gradients: Array
    """Gradients of the losses' sum with respect to the logits, `[P, 16]`."""


@np.errstate(over="ignore", invalid="ignore")
def soft_gradients(spec: RolloutSpec, logits: Array, start: Array, targets: Array, control: Array) -> SoftPass:
    """Return loss and gradients of the rollout from `start`, computed by back-propagation through time.

    Losses and gradients may be infinite or NaN, which `commit` handles, so NumPy's warnings are disabled.
    """
    shape, layout, dtype = spec.shape, spec.layout, start.dtype
    parameters = spec.hardened or parameters_of(layout, logits)[0]
    nodes = np.empty((shape.steps, layout.nodes, shape.cells), dtype=dtype)
    loss_partials = np.empty((len(shape.judged_steps), shape.cells), dtype=dtype)
    states, d_judged = run_steps(spec, parameters, start, nodes, targets, loss_partials)
    d_patches = np.empty((2, PATCH * shape.channels, shape.cells), dtype=dtype)  # rows for odd and even steps
    squared_error(shape, states[-1], targets, d_patches[shape.steps % 2], loss_partials[-1], control)
    gradients = pull_back(spec, parameters, logits, nodes, d_judged, d_patches, control)
    return SoftPass(states, loss_partials, gradients)


def pull_back(
    spec: RolloutSpec,
    parameters: Parameters,
    logits: Array,
    nodes: Array,
    d_judged: Array,
    d_patches: Sequence[Array] | Array,
    control: Array,
) -> Array:
    """Return gradients `[P, 16]` from the adjoints of the last state, `d_patches[T % 2]`, and earlier ones, `d_judged`.

    Steps use the two rows of `d_patches` alternately, so `d_patches[0]` finally contains the initial state's adjoint.
    `nodes [T, N, cells]` are those of the forward pass.
    """
    shape, layout = spec.shape, spec.layout
    scratch = np.zeros((layout.slot_count, shape.cells), dtype=nodes.dtype)
    moments = 4 + (2 * layout.candidates if layout.candidates > 1 else 0)
    partials = np.zeros((layout.instances, moments), dtype=nodes.dtype)
    for step in reversed(range(shape.steps)):
        d_next, d_here = d_patches[(step + 1) % 2], d_patches[step % 2]
        gate_backward(shape, step, layout, parameters, spec.masks, nodes[step], d_next, scratch, d_here, partials)
        # The events of the forward pass, in reverse order.
        if spec.faults is not None:
            d_faults(shape, step, spec.faults.key, spec.faults.listed, d_here)
        if step in shape.damage_steps:
            d_damage(shape, shape.damage_steps.index(step), spec.squares, d_here)
        if step in shape.judged_steps:
            step_loss_backward(shape, shape.judged_steps.index(step), d_judged, d_here)
    gradients = np.empty_like(logits)
    logit_gradients(shape.faults, layout, partials, logits, gradients, control)
    return gradients


def hard_rollout(spec: RolloutSpec, logits: Array, start: Array) -> tuple[Array, Array]:
    """Run a rollout from packed `start [C, groups*H*W]` with the most probable gates and wires of the logits.

    Returns:
        States `[T+1, C, groups*H*W]`, and those of the loss channels after each evaluated step, before damage,
        `[J, loss_channels, groups*H*W]`.
    """
    shape = spec.shape
    packed = dataclasses.replace(shape, batch=start.shape[1] // shape.cells_per_grid)
    layout, (_, gate_ids) = spec.layout.chosen(logits), parameters_of(spec.layout, logits)
    words = np.empty((shape.steps + 1, *start.shape), dtype=np.uint32)
    judged = np.empty((len(shape.judged_steps), shape.loss_channels, start.shape[1]), dtype=np.uint32)
    words[0] = start
    nodes = np.empty((layout.nodes, start.shape[1]), dtype=np.uint32)
    for step in range(shape.steps):
        if step in shape.damage_steps:
            hard_damage(packed, shape.damage_steps.index(step), spec.squares, words[step])
        if spec.faults is not None:
            hard_faults(packed, step, spec.faults.key, spec.faults.listed, words[step])
        hard_forward(packed, step, layout, gate_ids, spec.masks, words[step], words[step + 1], nodes)
        if step + 1 in shape.judged_steps:
            judged[shape.judged_steps.index(step + 1)] = words[step + 1, : shape.loss_channels]
    return words, judged
