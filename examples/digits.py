"""Handwritten digits by logic gates alone: a layer of PyTorch while it learns, a circuit of two-input gates after.

    pip install 'difflogic-ca[torch]' scikit-learn
    python examples/digits.py --seed 0

Every pixel, 0 to 16, becomes a thermometer of bits: is it above 1, above 3, ...? Two layers of gates follow. The last
one's outputs are counted in ten groups, and the digit whose group has the most ones is the answer. Of the 1,797 digits
of scikit-learn 20 in a hundred are held out: what is printed is how many of these the hard circuit names rightly.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from difflogic import Circuit
from difflogic.config.train import InitialConfig
from difflogic.torch import CircuitModule

THRESHOLDS = np.arange(1, 16, 2)
GATES = 2000
TEMPERATURE = 6.0
"""What a group's ones are divided by: two hundred of them would leave the softmax no doubt to learn from."""
BATCH = 128


def thermometer(pixels: np.ndarray) -> torch.Tensor:
    """`[n, 64]` of 0 to 16 -> bits `[n, 64 * 8]`."""
    return torch.tensor((pixels[..., None] > THRESHOLDS).reshape(len(pixels), -1), dtype=torch.float32)


def votes(layer: CircuitModule, bits: torch.Tensor) -> torch.Tensor:
    """How many ones each digit's group has, `[n, 10]`, on a scale that suits the softmax."""
    return layer(bits).reshape(len(bits), 10, -1).sum(-1) / TEMPERATURE


def learn(bits: torch.Tensor, labels: torch.Tensor, epochs: int, seed: int) -> CircuitModule:
    """A layer that has learned the labels; its gates are hard on the way forward from the beginning."""
    torch.manual_seed(seed)
    circuit = Circuit.feed_forward([bits.shape[1], GATES, GATES], seed, InitialConfig(logit=1.0, noise=1.0))
    layer = CircuitModule(circuit, hard=True)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
    for _ in range(epochs):
        order = torch.randperm(len(bits))
        for chosen in order[: len(order) // BATCH * BATCH].reshape(-1, BATCH):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(votes(layer, bits[chosen]), labels[chosen]).backward()
            optimiser.step()
    return layer


def accuracy(layer: CircuitModule, bits: torch.Tensor, labels: torch.Tensor) -> float:
    """Of the hard circuit."""
    layer.hard = True
    with torch.no_grad():
        return float((votes(layer, bits).argmax(1) == labels).float().mean())


def main() -> None:
    """Learn, harden, and say how well."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=200)
    asked = parser.parse_args()
    pixels, names = load_digits(return_X_y=True)
    seen, held_out, labels, answers = train_test_split(pixels, names, test_size=0.2, random_state=0, stratify=names)
    layer = learn(thermometer(seen), torch.tensor(labels), asked.epochs, asked.seed)
    rate = accuracy(layer, thermometer(held_out), torch.tensor(answers))
    sys.stdout.write(f"{layer.circuit.gates} gates name {100 * rate:.1f} % of {len(answers)} held-out digits.\n")


if __name__ == "__main__":
    main()
