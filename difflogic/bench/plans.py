"""Predict the GPU memory that training needs under each memory strategy, before any memory is allocated."""

from dataclasses import replace
from typing import Any

import numpy as np

from difflogic.config.dataset import Dataset
from difflogic.config.schema import Config
from difflogic.core import rules
from difflogic.engine.job import Job, probe_count
from difflogic.engine.population import configs
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import checkpoint_distances, plan_for
from difflogic.model.circuit import Circuit


def memory_plans(adapter: str | None, config: Config, population: int, max_memory: int | None) -> list[dict[str, Any]]:
    """Return a row per strategy with the bytes of each buffer of the largest group; `chosen` marks the selected row.

    Strategy `kept` stores all gate values in the forward pass. Strategy `recomputed` stores only the states, or every
    2nd, 3rd, ... state, and recomputes the steps. Raises LimitError if memory is insufficient for every strategy.
    """
    jobs = [sizes(member) for member in configs(config, population)]
    chosen = plan_for(GpuDevice(select_adapter(adapter)), jobs, max_memory=max_memory)
    memories = [(True, 1), *((False, spacing) for spacing in checkpoint_distances(config.task.steps))]
    plans = [replace(chosen, launch=chosen.launch.with_memory(*memory)) for memory in memories]
    return [_row(plan, plan.launch == chosen.launch) for plan in plans]


def sizes(config: Config) -> Job:
    """Return a job whose grids have the correct shapes but occupy no memory, for the prediction of sizes."""
    task = config.task
    # `broadcast_to` makes an array of any shape that stores only one number.
    sides = (task.height, task.width)
    rule = rules.table(task.rule) if task.target == "rule" else None
    wanted = np.broadcast_to(np.float32(0), (*sides, task.loss_channels)) if task.is_fixed else None
    samples = None
    if task.target == "data":
        x = np.broadcast_to(np.uint8(0), (config.data.samples, *sides, config.data.channels))
        y = np.broadcast_to(np.int8(0), (config.data.samples, config.data.targets, *sides, task.loss_channels))
        samples = Dataset(x, y, task.judged_steps)
    count = probe_count(config)
    return Job(
        config,
        Circuit.initial(config.model, config.seed),
        wanted,
        probes=np.broadcast_to(np.uint8(0), (count, *sides, config.model.channels)),
        probe_masks=np.broadcast_to(np.float32(0), (task.steps, *sides, 1)) if config.train.asynchronous else None,
        rule=rule,
        data=samples,
        probe_damage=np.zeros((len(task.damage_steps), count, 2), dtype=np.int64) if task.damage_steps else None,
    )


def _row(plan: Plan, is_chosen: bool) -> dict[str, Any]:
    counts = plan.buffer_counts()
    return {
        "strategy": "kept" if plan.launch.store_activations else "recomputed",
        "states_apart": plan.launch.checkpoint_every,
        "chosen": is_chosen,
        "groups": plan.model_groups,
        "models_per_group": plan.models,
        "total_bytes": plan.total_bytes(),
        "buffers": {name: size * counts.get(name, 1) for name, size in plan.buffer_bytes().items()},
    }
