"""A circuit without secrets: every cell keeps its state, and so does every test of it have a known answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.config import presets
from difflogic.config.model import ModelConfig
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.core import gates
from difflogic.engine import job
from difflogic.engine.job import TrainState
from difflogic.model.circuit import Circuit
from difflogic.runs import checkpoint
from difflogic.runs.checkpoint import Checkpoint, ModelState
from tests.jobs import random_network


def keeper(channels: int, periodic: bool = False) -> Circuit:
    """Two layers; the new state of a channel is its centre, by the gate A."""
    start = np.zeros(16, dtype=np.float32)
    start[gates.PASS_THROUGH] = 20
    cells = np.arange(channels)
    return Circuit.from_arrays(
        logits={"perceive": [np.tile(start, (1, 1, 1))], "update": [np.tile(start, (channels, 1))]},
        wires={"perceive": [np.array([[0], [4]])], "update": [np.stack([cells, cells])]},
        channels=channels,
        periodic=periodic,
    )


def keeper_config(channels: int, task: dict[str, Any], **train: Any) -> Config:
    base = presets.checkerboard(small=True)
    model = ModelConfig(channels, 1, random_network(9, 1), random_network(2 * channels, channels), periodic=False)
    return Config("keeper", model, TaskConfig(**task), base.train, seed=7).with_(train=train)


def kept(path: Path, config: Config, seeds: int = 1, leader: int = 0, epoch: int = 3) -> Path:
    """Write a run folder with nothing but the checkpoint of `keeper`, with a member for each of `seeds` seeds."""
    circuit = keeper(config.model.channels)
    members = []
    for seed in range(config.seed, config.seed + seeds):
        own = config.with_(seed=seed)
        state = replace(TrainState.initial(job.make_job(own, circuit)), epoch=epoch)
        members.append(ModelState(own, circuit, state))
    path.mkdir()
    checkpoint.save(path, Checkpoint(tuple(members), leader))
    return path
