"""Task: solve a maze by a wave that spreads from its entrance, one cell a step, and never through a wall.

    difflogic train difflogic-tasks:maze

The step at which the wave reaches a cell is its distance. Tracing back from the exit, always to a neighbour that the
wave reached a step earlier, gives the shortest path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import Dataset, Task, circuit, setting

Bits = npt.NDArray[np.uint8]

NEVER = 1 << 16
"""Arrival step of cells that the wave does not reach."""
SIDES = ((0, 1), (1, 0), (0, -1), (-1, 0))
WALL, FREE, WAY = np.array([[40, 40, 40], [250, 250, 250], [220, 60, 40]], dtype=np.uint8)


@dataclass(frozen=True)
class Maze(Task):
    """A wave that finds the path through a maze."""

    version = "1"
    size: int = setting(5, "Cells of the maze a side; the grid has walls around and between them", least=2, most=40)
    open_walls: int = setting(
        3, "Walls that are removed in addition to those that connect all cells of the maze", least=0, most=400
    )
    steps_judged: int = setting(6, "CA steps, each of which is evaluated", least=1, most=400)

    def fields(self) -> Mapping[str, Any]:
        return {
            "model": circuit(channels=3, neighbourhood="von-neumann"),
            "train": {"epochs": 1000, "batch": 16},
            "optimizer": {"lr": 0.06},
            "data": {"samples": 256},
        }

    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        free = np.stack([self._free(rng) for _ in range(count)])
        wave = np.zeros_like(free)
        wave[:, 1, 1] = 1  # the entrance; the exit is the opposite corner
        frames = list(waves(wave, free, self.steps_judged))
        x = np.stack([wave, 1 - free], axis=-1)
        return Dataset.of(x, np.stack(frames[1:], axis=1)[..., None], range(1, self.steps_judged + 1))

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        """Return the shares of mazes with a right wave, and of mazes whose exit is reached in time."""
        right = (states[..., 0] == samples.y[..., 0]).all(axis=(1, 2, 3))
        reached = samples.y[:, -1, -2, -2, 0] == 1
        return {"right waves": float(right.mean()), "mazes with an exit in reach": float(reached.mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {f"maze-{number + 1}": _image(maze) for number, maze in enumerate(film[:3, ..., :2])}

    def _free(self, rng: np.random.Generator) -> Bits:
        """Return the free cells `[2 * size + 1] * 2` of a maze: a spanning tree by Kruskal, with some walls removed."""
        side, trees = 2 * self.size + 1, np.arange(self.size**2).reshape(self.size, self.size)
        free = np.zeros((side, side), dtype=np.uint8)
        free[1::2, 1::2] = 1
        doors = [(row, column, axis) for row, column in np.ndindex(self.size, self.size) for axis in (0, 1)
                 if (row, column)[axis] + 1 < self.size]  # fmt: skip
        left = self.open_walls
        for number in rng.permutation(len(doors)):
            row, column, axis = doors[number]
            here, there = trees[row, column], trees[row + (axis == 0), column + (axis == 1)]
            if here == there and left == 0:
                continue
            left -= here == there
            trees[trees == there] = here
            free[2 * row + 1 + (axis == 0), 2 * column + 1 + (axis == 1)] = 1
        return free


def waves(wave: Bits, free: Bits, steps: int) -> list[Bits]:
    """Return the wave `[N, H, W]` initially and after each step."""
    frames = [wave]
    for _ in range(steps):
        around = np.pad(frames[-1], ((0, 0), (1, 1), (1, 1)))
        frames.append(free & (around[:, 1:-1, 1:-1] | around[:, :-2, 1:-1] | around[:, 2:, 1:-1]
                            | around[:, 1:-1, :-2] | around[:, 1:-1, 2:]))  # fmt: skip
    return frames


def way(arrival: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the path from the exit to the entrance by the arrival steps `[H, W]`; empty if there is none."""
    place = (arrival.shape[0] - 2, arrival.shape[1] - 2)
    path = []
    while arrival[place] < NEVER:
        path.append(place)
        steps = [(place[0] + down, place[1] + right) for down, right in SIDES]
        earlier = [step for step in steps if arrival[step] == arrival[place] - 1]
        if not earlier:
            break
        place = earlier[0]
    return path


def _image(frames: Bits) -> npt.NDArray[np.uint8]:
    """Draw a maze `[T+1, H, W, 2]` with its wave, the later the darker, and the path from the exit."""
    wave, wall = frames[..., 0] == 1, frames[0, ..., 1] == 1
    arrival = np.where(wave.any(axis=0), wave.argmax(axis=0), NEVER)
    shade = np.clip(1 - arrival / (2 * len(frames)), 0, 1)[..., None] * np.array([150, 200, 255])
    cells = np.where(wall[..., None], WALL, np.where(arrival[..., None] < NEVER, shade, FREE)).astype(np.uint8)
    for place in way(arrival):
        cells[place] = WAY
    return cells
