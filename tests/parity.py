"""The authors' arrays in `tests/data`, as the objects that tests use."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from difflogic.engine.batch import Batch
from difflogic.model.circuit import ArraysByNetwork, Circuit

DATA = Path(__file__).parent / "data"
SMALL_MODELS = ("small_zero_boundary", "small_periodic_three_channels", "small_async", "one_perception_kernel")


@cache
def load(name: str) -> dict[str, np.ndarray]:
    """Every array of one file."""
    with np.load(DATA / f"{name}.npz") as archive:
        return {key: archive[key] for key in archive.files if key != "versions"}


def layers(arrays: dict[str, np.ndarray], prefix: str = "") -> ArraysByNetwork:
    """The arrays `{prefix}{perceive,update}/{layer}` as lists of layers."""
    found: ArraysByNetwork = {}
    for network in ("perceive", "update"):
        count = sum(key.startswith(f"{prefix}{network}/") for key in arrays)
        found[network] = [arrays[f"{prefix}{network}/{layer}"] for layer in range(count)]
    return found


@dataclass(frozen=True)
class SmallModel:
    """One small model and everything the authors' code computed for it."""

    arrays: dict[str, np.ndarray]
    circuit: Circuit
    steps: int
    loss_channels: int

    @property
    def x(self) -> np.ndarray:
        return self.arrays["x"]

    @property
    def y(self) -> np.ndarray:
        return self.arrays["y"]

    @property
    def masks(self) -> np.ndarray | None:
        return self.arrays.get("masks")

    @property
    def batch(self) -> Batch:
        return Batch(self.x, self.y, self.steps, self.loss_channels, self.masks)


def small_model(name: str) -> SmallModel:
    arrays = load(name)
    hyper = json.loads(str(arrays["hyperparams_json"]))
    logits, wires = layers(arrays, "logits/"), layers(arrays, "wires/")
    circuit = Circuit.from_arrays(logits, wires, hyper["channels"], bool(hyper["periodic"]))
    return SmallModel(arrays, circuit, hyper["num_steps"], int(arrays["nch"]))
