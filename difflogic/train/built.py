"""Attempts that are not trained: one is built, or completes what another has learned.

Samples may show a whole rule, and a picture can always be looked up. What a search leaves wrong of a picture takes a
few gates more, and channels that are alike are learned once and copied.
"""

from __future__ import annotations

from functools import lru_cache

from difflogic.circuits.synthesis import copies, repair
from difflogic.circuits.synthesis.convert import lean, to_xag
from difflogic.circuits.synthesis.layered import layered
from difflogic.circuits.synthesis.observed import observed
from difflogic.circuits.synthesis.placed import placed
from difflogic.config import presets
from difflogic.config.dataset import Dataset
from difflogic.config.model import ModelConfig
from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config
from difflogic.core import text_picture, wiring
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


def learned_once(config: Config) -> Config:
    """The configuration that learns each channel of the picture once; itself where no two are alike, and none is dark.

    Of such a task alone what an attempt has learned can be completed. A start picture has its own channels, in order.
    """
    if not _is_completed(config) or config.task.start == "picture":
        return config
    target = job.fixed_target(config.task)
    shown = copies.sources(target)
    kept = [shown.index(each) for each in range(max(shown) + 1)]
    if len(kept) in (0, len(shown)):
        return config
    return config.with_(task={"picture": text_picture.encode(target[..., kept]), "loss_channels": len(kept)})


@lru_cache(4)  # whether it can be is asked before the attempt, of its best circuit and its last; then it is made
def completed(whole: Config, config: Config, circuit: Circuit) -> Circuit | None:
    """Return a circuit that shows the picture of `whole`, made of what an attempt of `config` has learned.

    A few wrong values are repaired, and channels that were learned once are copied. None where too much is wrong.
    """
    if not _is_completed(config):
        return None
    task, model = config.task, config.model
    found = repair.repaired(lean(CellNetlist.of_run(circuit, config)), job.fixed_target(task), task.steps)
    if found is None:
        return None
    if task != whole.task:
        found = copies.widened(found, copies.sources(job.fixed_target(whole.task)))
    return layered(to_xag(found), model.periodic, model.neighbourhood)


def _is_completed(config: Config) -> bool:
    """Return whether it is a picture of one moment, from one start, that a search ends with."""
    task = config.task
    one = task.target == "picture" and task.judged_steps == (task.steps,) and job.start(config) is not None
    return one and config.search.begin > 0 and not config.train.asynchronous


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
