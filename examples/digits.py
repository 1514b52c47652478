"""Recognize handwritten digits by logic gates: train them as a PyTorch layer, and evaluate the hard circuit.

    pip install 'difflogic-ca[torch]' scikit-learn
    python examples/digits.py --seed 0

Every pixel, 0 to 16, becomes a thermometer code: is it above 1, above 3, ...? Two layers of gates follow. The outputs
of the last one are counted in ten groups, and the digit whose group has the most ones is the answer. Of the 1,797
digits of scikit-learn 20 % are held out. The program prints the accuracy of the hard circuit on these.
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
"""Divisor of a group's ones: with two hundred of them the softmax would saturate."""
BATCH = 128


def thermometer(pixels: np.ndarray) -> torch.Tensor:
    """Return the bits `[n, 64 * 8]` of pixels `[n, 64]` from 0 to 16."""
    return torch.tensor((pixels[..., None] > THRESHOLDS).reshape(len(pixels), -1), dtype=torch.float32)


def votes(layer: CircuitModule, bits: torch.Tensor) -> torch.Tensor:
    """Return the scaled number of ones in each digit's group, `[n, 10]`."""
    return layer(bits).reshape(len(bits), 10, -1).sum(-1) / TEMPERATURE


def learn(bits: torch.Tensor, labels: torch.Tensor, epochs: int, seed: int) -> CircuitModule:
    """Train a layer on the labels, with hard gates in the forward pass."""
    torch.manual_seed(seed)
    circuit = Circuit.feed_forward([bits.shape[1], GATES, GATES], seed, InitialConfig(logit=1.0, noise=1.0))
    layer = CircuitModule(circuit, hard=True)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
    for _ in range(epochs):
        order = torch.randperm(len(bits))
        for rows in order[: len(order) // BATCH * BATCH].reshape(-1, BATCH):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(votes(layer, bits[rows]), labels[rows]).backward()
            optimiser.step()
    return layer


def accuracy(layer: CircuitModule, bits: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the accuracy of the hard circuit."""
    layer.hard = True
    with torch.no_grad():
        return float((votes(layer, bits).argmax(1) == labels).float().mean())


def main() -> None:
    """Train a layer and print its accuracy on held-out digits."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=200)
    options = parser.parse_args()
    pixels, names = load_digits(return_X_y=True)
    train, test, labels, answers = train_test_split(pixels, names, test_size=0.2, random_state=0, stratify=names)
    layer = learn(thermometer(train), torch.tensor(labels), options.epochs, options.seed)
    rate = accuracy(layer, thermometer(test), torch.tensor(answers))
    sys.stdout.write(f"{layer.circuit.gates} gates recognize {100 * rate:.1f} % of {len(answers)} held-out digits.\n")


if __name__ == "__main__":
    main()
