"""Attempts that are not trained: one is built, or has what is wrong of another's circuit repaired.

Samples may show a whole rule, and a picture can always be looked up. What a search leaves wrong of a picture takes a
few gates more.
"""

from __future__ import annotations

from functools import lru_cache

from difflogic.circuits.synthesis import repair
from difflogic.circuits.synthesis.convert import lean, to_xag
from difflogic.circuits.synthesis.layered import layered
from difflogic.circuits.synthesis.observed import observed
from difflogic.circuits.synthesis.placed import placed
from difflogic.config import presets
from difflogic.config.dataset import Dataset
from difflogic.config.model import ModelConfig
from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config
from difflogic.core import wiring
from difflogic.engine import job
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit


def circuit(config: Config | PolicyConfig, samples: Dataset | None) -> Circuit | None:
    """Return a circuit that does what the samples show, of those that are not held out, or that shows the picture.

    None where none is found, where the recipe decides no gates, or where the configuration names a circuit to train.
    """
    if isinstance(config, PolicyConfig) or not (config.hardening.share or config.search.begin):
        return None
    if config.train.asynchronous or not config.can_be_searched:
        return None
    model, graph = config.model, None
    if samples is not None and _is_usual(model, presets.model_of_samples(samples)):
        learned, _ = samples.split(config.data.held_out)
        graph = observed(learned, model.periodic, model.neighbourhood)
    elif config.task.target == "picture" and config.name in presets.PRESETS:
        graph = placed(config) if _is_usual(model, presets.get(config.name).model) else None
    return None if graph is None else layered(graph, model.periodic, model.neighbourhood)


@lru_cache(1)  # whether it can be is asked before the attempt, and then it is made
def repaired(config: Config | PolicyConfig, circuit: Circuit) -> Circuit | None:
    """Return a circuit that shows the picture, made of one that a search left a few wrong values of; None: of none."""
    if isinstance(config, PolicyConfig) or not config.search.begin or config.train.asynchronous:
        return None
    task, model = config.task, config.model
    if task.target != "picture" or task.judged_steps != (task.steps,):
        return None
    found = repair.repaired(lean(CellNetlist.of_run(circuit, config)), job.fixed_target(task), task.steps)
    return None if found is None else layered(to_xag(found), model.periodic, model.neighbourhood)


def _is_usual(model: ModelConfig, usual: ModelConfig) -> bool:
    return (model.channels, model.perceive, model.update) == (usual.channels, usual.perceive, usual.update)


def fitted(config: Config, circuit: Circuit) -> Config:
    """The configuration of an attempt that begins with such a circuit."""
    perceive, update = ([layer.shape[-2] for layer in layers] for layers in circuit.logits.values())
    inputs = circuit.channels * (1 + circuit.kernels * perceive[-1])
    model = {
        "channels": circuit.channels,
        "kernels": circuit.kernels,
        "perceive": {"widths": [wiring.PATCH, *perceive], "connections": ["first_kernel"]},
        "update": {"widths": [inputs, *update], "connections": ["random"] * len(update)},
        "wiring_per_kernel": False,
        "all_round": False,
    }
    return config.with_(model=model, hardening={"share": 0.0}, search={"begin": 0})


def refuted(*_: object) -> str:
    """Return why it is given up at its first evaluation, in words that continue a sentence."""
    return "other samples are not as those that it was built from"
