"""Finishing passes: exact changes of the circuit after an attempt to learn an image.

One pass repairs a few cells that are wrong after the search. Others add the channels that were not trained, and a clock
and a latch that keep the image. They change the circuit's shape, so the result has a separate configuration.
"""

from dataclasses import dataclass, replace

import numpy as np

from difflogic.circuits.synthesis import copies, held, invariant, repair
from difflogic.circuits.synthesis.convert import lean, to_xag
from difflogic.circuits.synthesis.layered import layered
from difflogic.circuits.synthesis.prune import pruned
from difflogic.config.schema import Config
from difflogic.core import text_picture, wiring
from difflogic.core.bits import Bits
from difflogic.engine import job
from difflogic.engine.job import TrainState
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.runs.checkpoint import ModelState
from difflogic.system.words import counted, line


@dataclass(frozen=True)
class Finishing:
    """Finishing passes for an attempt that was trained with `config` and should solve the task of `complete`."""

    complete: Config
    config: Config

    def is_done(self, model: ModelState | None) -> bool:
        """Return whether a model solves the complete task, without mismatches."""
        return model is not None and model.best == 0 and model.config.task == self.complete.task

    def repaired(self, circuit: Circuit) -> tuple[CellNetlist, CellNetlist | None]:
        """Return the netlists before and after the repair; the second is None if too many cells are wrong."""
        before = lean(CellNetlist.of_run(circuit, self.config))
        return before, repair.repaired(before, job.fixed_target(self.config.task), self.config.task.steps)

    def run(self, circuit: Circuit, seed: int, epoch: int, prune: bool = True) -> tuple[ModelState, list[str]] | None:
        """Return the finished model with lines for the summary, or None if the passes fail.

        `seed` and `epoch` are the circuit's. Pruning takes seconds, and removes about one gate in twenty.
        """
        task, target = self.config.task, job.fixed_target(self.config.task)
        before, repaired = self.repaired(circuit)
        if repaired is None:
            return None
        wrong = int((_shown(before, task.steps) != target).any(axis=-1).sum())
        gates = max(0, len(repaired.gates) - len(before.gates))
        lines = [line("Repaired", f"{counted(wrong, 'wrong cell')}, {counted(gates, 'gate')} added")] if wrong else []
        shown = job.fixed_target(self.complete.task)
        if task.picture != self.complete.task.picture:
            repaired = copies.widened(repaired, copies.sources(shown))
            channels = f"{task.loss_channels} of {shown.shape[-1]} channels"
            lines.append(line("Learned", f"{channels}; the others are copies of these or always 0"))
        finished = self._layered(repaired)
        finished = pruned(finished, shown.shape[-1]) if prune else finished
        if self.complete.task.stays:
            learned = lean(CellNetlist.of_run(finished, fitted(self.complete, finished)))
            holding = held.held(learned, task.steps)
            finished, share = self._layered(holding), held.returns(holding, shown, task.steps)
            if share is None:
                return None
            added = counted(len(holding.gates) - len(learned.gates), "gate")
            lines.append(line("Stays", f"from step {task.steps} on, for ever (proved, since the states repeat)"))
            lines.append(line("Held", f"by a clock and a latch in each cell, {added} added"))
            lines.append(line("Returns", f"after a 3x3 square is set to zero, for {100 * share:.1f} % of all squares"))
        config = fitted(self.complete, finished).with_(seed=seed)
        if not np.array_equal(_shown(CellNetlist.of_run(finished, config), task.steps), shown):
            return None
        state = replace(TrainState.initial(job.make_job(config, finished)), epoch=epoch)
        return ModelState(config, finished, state, best=0), lines

    def _layered(self, netlist: CellNetlist) -> Circuit:
        return layered(to_xag(netlist), self.config.model.periodic, self.config.model.neighbourhood)


def learned_once(config: Config) -> Config:
    """Return the configuration of a simpler task: no repeated or dark channels, and no stability after step T.

    Finishing passes later add the rest. If they cannot, or an initial image fixes the channels, return `config`.
    """
    if not can_be_finished(config) or config.task.start == "picture":
        return config
    target, once = job.fixed_target(config.task), config.with_(task={"stays": False})
    shown = copies.sources(target)
    first = [shown.index(channel) for channel in range(max(shown) + 1)]
    if len(first) in (0, len(shown)):
        return once
    return once.with_(task={"picture": text_picture.encode(target[..., first]), "loss_channels": len(first)})


def can_be_finished(config: Config) -> bool:
    """Return whether finishing passes apply: a synchronous task of one image and one initial state, with a search."""
    task = config.task
    is_image = task.target == "picture" and task.judged_steps == (task.steps,) and job.start(config) is not None
    return is_image and config.search.begin > 0 and not config.train.asynchronous


def fitted(config: Config, circuit: Circuit) -> Config:
    """Return `config` with a `model` section that describes the shape of `circuit`, a synthesized circuit."""
    perceive, update = ([layer.shape[-2] for layer in layers] for layers in circuit.logits.values())
    inputs = circuit.channels * (1 + circuit.kernels * perceive[-1])
    model = {
        "channels": circuit.channels,
        "kernels": circuit.kernels,
        "perceive": {"widths": [wiring.PATCH, *perceive], "connections": ["first_kernel"]},
        "update": {"widths": [inputs, *update], "connections": ["random"] * len(update)},
        "wiring_per_kernel": False,
        "all_round": False,
        "candidates": 1,
    }
    return config.with_(model=model, hardening={"share": 0.0}, search={"begin": 0})


def _shown(netlist: CellNetlist, steps: int) -> Bits:
    """Return the visible channels after `steps` steps, uint8 `[H, W, visible]`."""
    return netlist.rollout(invariant.start_of(netlist)[None], steps)[-1, 0, ..., : netlist.visible]
