"""The attempt at samples that is built, not trained: they may show the whole of a rule."""

from __future__ import annotations

from difflogic.circuits.synthesis.layered import layered
from difflogic.circuits.synthesis.observed import observed
from difflogic.config import presets
from difflogic.config.dataset import Dataset
from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config
from difflogic.core import wiring
from difflogic.model.circuit import Circuit


def of_samples(config: Config | PolicyConfig, samples: Dataset | None) -> Circuit | None:
    """Return a circuit that does what the samples show, of those that are not held out.

    None where none is found, where the recipe decides no gates, or where the configuration names a circuit to train.
    """
    if samples is None or isinstance(config, PolicyConfig):
        return None
    model, usual = config.model, presets.model_of_samples(samples)
    named = (model.channels, model.perceive, model.update) != (usual.channels, usual.perceive, usual.update)
    if named or not config.hardening.share or config.train.asynchronous or config.task.disturbed:
        return None
    learned, _ = samples.split(config.data.held_out)
    graph = observed(learned, model.periodic, model.neighbourhood)
    return None if graph is None else layered(graph, model.periodic, model.neighbourhood)


def fitted(config: Config, circuit: Circuit) -> Config:
    """The configuration of an attempt that begins with the circuit."""
    perceive, update = ([layer.shape[-2] for layer in layers] for layers in circuit.logits.values())
    inputs = circuit.channels * (1 + circuit.kernels * perceive[-1])
    model = {
        "kernels": circuit.kernels,
        "perceive": {"widths": [wiring.PATCH, *perceive], "connections": ["first_kernel"]},
        "update": {"widths": [inputs, *update], "connections": ["random"] * len(update)},
        "wiring_per_kernel": False,
        "all_round": False,
    }
    return config.with_(model=model, hardening={"share": 0.0})


def refuted(*_: object) -> str:
    """Return why it is given up at its first evaluation, in words that continue a sentence."""
    return "other samples are not as those that it was built from"
