"""Small training jobs with everything that a task can ask for."""

from typing import Any

import numpy as np

from difflogic.config.dataset import Dataset
from difflogic.config.fields import merged
from difflogic.config.model import ModelConfig
from difflogic.config.schema import Config
from difflogic.config.task import DataConfig, TaskConfig
from difflogic.config.train import TrainConfig
from difflogic.core import text_picture
from difflogic.engine import job
from difflogic.engine.job import Job
from difflogic.model.circuit import Circuit
from tests.jobs import random_network
from tests.sections import sections

C = 3
SEED = 31
"""With it the losses of a batch lie clearly apart, in the first epochs of every task with a pool: which sample is the
worst is then no matter of rounding."""

TASKS: dict[str, dict[str, Any]] = {
    "boards and a rule, torus": {"channels": 1, "periodic": True, "target": "rule", "rule": "B36/S23",
        "start": "boards", "height": 3, "width": 4, "steps": 2, "batch": 17},
    "noise and a rule": {"target": "rule", "rule": "B3/S0123", "height": 7, "width": 5, "batch": 2},
    "a seed": {"start": "seed", "batch": 1},
    "nothing": {"periodic": True, "start": "zeros", "loss_channels": 2},
    "a picture to a picture": {"start": "picture", "target": "picture", "loss_channels": 3},
    "hardened gates": {"fire_rate": 0.6, "hardening": {"share": 0.6, "begin": 1, "end": 4}},
    "every gate hard": {"batch": 17, "hardening": {"share": 1.0, "end": 1}},
    "a falling learning rate": {"schedule": {"share": 0.2, "end": 4}},
    "several losses": {"loss_steps": (1, 2, 4), "loss_channels": 2},
    "damage": {"damage_side": 3, "damage_steps": (0, 2)},
    "damage of one cell, batch of 17": {"channels": 1, "damage_side": 1, "damage_steps": (1, 2, 3), "height": 3,
        "width": 3, "batch": 17},
    "a loss just before the damage": {"periodic": True, "loss_steps": (2, 4), "damage_side": 4, "damage_steps": (2,),
        "batch": 1},
    "bit flips": {"flip": 0.2, "loss_steps": (2, 4)},
    "one step with flips and stuck cells": {"channels": 1, "periodic": True, "flip": 0.1, "stuck_cells": 0.3,
        "target": "rule", "rule": "B3/S23", "steps": 1, "batch": 33},
    "stuck cells, drawn and listed": {"stuck_cells": 0.1, "stuck_at": "1", "stuck_list": ("0,0=0", "4,6=1"),
        "start": "seed"},
    "cells stuck at 1 in squares of the first step": {"stuck_cells": 0.3, "stuck_at": "1", "damage_side": 5,
        "damage_steps": (0,), "steps": 1, "batch": 33},
    "stuck gates": {"stuck_gates": 0.2},
    "every fault, damage and hardened gates": {"periodic": True, "flip": 0.05, "stuck_cells": 0.05, "stuck_gates": 0.05,
        "stuck_at": "0", "stuck_list": ("2,3=1",), "damage_side": 2, "damage_steps": (0, 2), "loss_steps": (2, 4),
        "batch": 4, "fire_rate": 0.6, "hardening": {"share": 0.3, "end": 1}, "pool": {"size": 8}},
    "a pool": {"start": "seed", "steps": 2, "batch": 4, "fire_rate": 0.4, "pool": {"size": 16}},
    "a pool of noise, no resets": {"batch": 3, "fire_rate": 0.3, "pool": {"size": 6, "reset": 0}},
    "a pool of one grid": {"start": "zeros", "batch": 1, "pool": {"size": 1}},
    "a pool that stays": {"steps": 1, "batch": 2, "fire_rate": 0.4, "pool": {"size": 8, "starts": "any"}},
    "a pool of boards": {"channels": 1, "start": "boards", "height": 4, "width": 3, "steps": 2, "batch": 17,
        "fire_rate": 0.3, "pool": {"size": 34, "reset": 5}},
    "everything": {"periodic": True, "start": "picture", "target": "picture", "loss_channels": 2,
        "loss_steps": (2, 3, 4), "damage_side": 2, "damage_steps": (0, 3), "batch": 4, "fire_rate": 0.6,
        "pool": {"size": 8, "reset": 2}},
    "everything but a pool": {"target": "rule", "rule": "B/S8", "loss_steps": (1, 4), "damage_side": 3,
        "damage_steps": (0, 1), "batch": 17, "fire_rate": 0.6},
    "samples": {"target": "data", "start": "zeros", "steps": 1, "loss_channels": 2, "data": {"channels": 1},
        "batch": 5},
    "samples with a target for each judged step": {"target": "data", "start": "random", "loss_steps": (1, 2, 4),
        "loss_channels": 2, "data": {"channels": 2, "targets": 3}, "batch": 4, "fire_rate": 0.6},
    "masked samples, damaged, on a torus": {"periodic": True, "target": "data", "start": "random", "loss_steps": (3, 4),
        "damage_side": 2, "damage_steps": (0, 3), "data": {"channels": 3, "held_out": 0.0}, "batch": 17},
}  # fmt: skip


def samples(config: Config, count: int = 41) -> Dataset:
    """Any, of the sizes that a configuration asks for; where both grids are whole, some values do not count."""
    task, data, rng = config.task, config.data, np.random.default_rng(8)
    x = rng.integers(0, 2, (count, task.height, task.width, data.channels))
    y = rng.integers(0, 2, (count, data.targets, task.height, task.width, task.loss_channels))
    mask = rng.integers(0, 2, y.shape[:-1]) if data.channels == config.model.channels else None
    return Dataset.of(x, y, task.judged_steps, mask)


def picture(height: int, width: int, bits: int, seed: int = 5) -> tuple[str, ...]:
    """Any."""
    drawn = np.random.default_rng(seed).integers(0, 2, (height, width, bits))
    return text_picture.encode(drawn.astype(np.uint8))


def task_config(name: str, seed: int = SEED, **fields: Any) -> Config:
    """One of TASKS."""
    own: dict[str, Any] = sections(**TASKS[name])
    model = {"channels": C, "periodic": False, **own.pop("model", {})}
    channels = model["channels"]
    task = {"target": "checkerboard", "height": 5, "width": 7, "steps": 4, **own.pop("task", {})}
    height, width = task["height"], task["width"]
    if task["target"] == "picture":
        task["picture"] = picture(height, width, task.get("loss_channels", 1))
    if task.get("start") == "picture":
        task["start_picture"] = picture(height, width, channels, seed=6)
    if task["target"] == "data":
        own["data"] = {"sha256": "any", "samples": 41, **own["data"]}
    update = (channels + channels * 4, 12, 6, channels)
    data = DataConfig(**own.pop("data", {}))
    base = {"train": {"epochs": 9, "batch": 3, "probes": 9}, "initial": {"logit": 2.0}}
    trained = merged(merged(base, own), sections(**fields))
    return Config(
        name=name,
        model=ModelConfig(channels, 2, random_network(9, 8, 2), random_network(*update), model["periodic"]),
        task=TaskConfig(**task),
        train=TrainConfig(1, 1),
        data=data,
        seed=seed,
    ).with_(**trained)


def task_job(name: str, seed: int = SEED, **fields: Any) -> Job:
    """One of TASKS, ready for an engine."""
    config = task_config(name, seed, **fields)
    circuit = Circuit.initial(config.model, config.seed, config.initial)
    if config.task.target != "data":
        return job.make_job(config, circuit)
    data = samples(config)
    return job.make_job(config.with_(data={"sha256": data.sha256}), circuit, data)
