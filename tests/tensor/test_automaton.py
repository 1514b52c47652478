"""A CA step written in the operations of tensors is the fused one, forward and back: gathering is a matrix product."""

from __future__ import annotations

import numpy as np
import pytest

from difflogic.autodiff import TABLE
from difflogic.engine.batch import Batch
from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, flat_layout
from difflogic.reference.engine import ReferenceEngine
from difflogic.tensor import Tensor
from tests import tolerances
from tests.naive import patch
from tests.random_circuits import bits, random_circuit

B, H, W, STEPS = 2, 4, 3, 2


def chosen(rows: np.ndarray, columns: int) -> np.ndarray:
    """Row i has its 1 in column `rows[i]`."""
    return np.eye(columns)[rows.astype(int)]


def shifts(periodic: bool) -> list[np.ndarray]:
    """By position in a patch, a matrix that puts at each cell what lies there from it."""
    cells = np.eye(B * H * W).reshape(-1, B, H, W)
    return [np.stack([patch(cell, f, periodic).reshape(-1) for cell in cells]) for f in range(9)]


def step(circuit: Circuit, layout: Layout, logits: Tensor, state: Tensor) -> Tensor:
    """`[C, cells]`, a step later."""

    def number(values: np.ndarray) -> Tensor:
        return Tensor(values, logits.device)

    coefficients = logits.softmax() @ number(TABLE)
    every_node = np.eye(layout.nodes)
    nodes = sum(
        number(every_node[:, f : layout.patch_nodes : 9]) @ state @ number(moved)
        for f, moved in enumerate(shifts(circuit.periodic))
    )
    for level in layout.levels:
        mine = slice(level.first_instance, level.first_instance + level.count)
        a, b = (number(chosen(layout.wires[mine, k], layout.nodes)) @ nodes for k in range(2))
        own = number(chosen(layout.instance_gates[mine], layout.gates)) @ coefficients
        c0, ca, cb, cab = (own @ number(np.eye(4)[:, [k]]) for k in range(4))
        value = c0 + ca * a + (cb + cab * a) * b
        nodes = nodes + number(every_node[:, layout.patch_nodes :][:, mine]) @ value
    return number(every_node[-circuit.channels :]) @ nodes


@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
@pytest.mark.parametrize("periodic", [False, True])
def test_it_is_the_fused_step(device: str, periodic: bool) -> None:
    rng = np.random.default_rng(0)
    circuit = random_circuit(rng, periodic=periodic)
    x, y = bits(rng, B, H, W, circuit.channels), bits(rng, B, H, W, circuit.channels)
    layout = flat_layout(circuit)
    logits = Tensor(circuit.flat_logits(), device, requires_grad=True)
    state = Tensor(x.reshape(-1, circuit.channels).T, device)
    for _ in range(STEPS):
        state = step(circuit, layout, logits, state)
    loss = ((state - y.reshape(-1, circuit.channels).T) ** 2).sum()
    loss.backward()
    expected, gradients = ReferenceEngine().loss_and_gradients(
        circuit, Batch(x, y, STEPS, loss_channels=circuit.channels)
    )
    assert loss.item() == pytest.approx(expected, rel=tolerances.LOSS_RTOL)
    flat = np.concatenate([each.reshape(-1, 16) for each in (*gradients["perceive"], *gradients["update"])])
    share = tolerances.GRADIENT_SHARE * np.abs(flat).max()
    np.testing.assert_allclose(logits.grad.numpy(), flat, rtol=0, atol=share)
