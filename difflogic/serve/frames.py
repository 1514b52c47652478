"""State frames: the automaton as it is now, small enough to send twice a second.

    {"epoch": 70, "seed": 23, "height": 16, "width": 16, "visible": 1,
     "film": {"steps": [0, 1, ..., 20], "bits": "..."}, "tiles": {"step": 20, "channels": [0, 1, ...], "bits": "..."}}

A hard rollout of the first probe: `film` has the visible channels of up to FILM steps, uint8
`[steps, visible, height, width]`, `tiles` up to TILES channels after the last one, `[channels, height, width]`. Bits
are packed eight to a byte, the first the highest, in base64. Of a larger grid the middle SIDE x SIDE cells are shown.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.engine import Engine
from difflogic.train.member import Member

SIDE = 64
VISIBLE = 6
FILM = 24
TILES = 16
MOST_VALUES = 1 << 24
"""Of a rollout, which holds all its states: beyond that there are no frames."""


def frame_of(engine: Engine, member: Member) -> dict[str, Any] | None:
    """The frame of a model with its present state; None where the rollout would be too large."""
    job, task = member.job, member.job.config.task
    if (task.steps + 1) * task.height * task.width * job.circuit.channels > MOST_VALUES:
        return None
    damage = job.damage_of_probes(1)
    states = engine.rollout(member.circuit, job.probes[:1], task.steps, "hard", job.probe_masks, damage)
    shown = _middle(states[:, 0].astype(np.uint8)).transpose(0, 3, 1, 2)
    steps = np.unique(np.linspace(0, task.steps, min(FILM, task.steps + 1)).round().astype(int))
    visible, channels = min(task.loss_channels, VISIBLE), min(shown.shape[1], TILES)
    return {
        "epoch": member.state.epoch,
        "seed": member.seed,
        "height": shown.shape[2],
        "width": shown.shape[3],
        "visible": visible,
        "film": {"steps": steps.tolist(), "bits": _packed(shown[steps, :visible])},
        "tiles": {"step": task.steps, "channels": list(range(channels)), "bits": _packed(shown[-1, :channels])},
    }


def _middle(states: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Of `[T+1, H, W, C]` at most SIDE rows and columns."""
    top, left = (max(0, (side - SIDE) // 2) for side in states.shape[1:3])
    return states[:, top : top + SIDE, left : left + SIDE]


def _packed(bits: npt.NDArray[np.uint8]) -> str:
    return base64.b64encode(np.packbits(bits).tobytes()).decode()
