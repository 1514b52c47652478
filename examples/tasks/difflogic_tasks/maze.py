"""A maze is solved by a wave that spreads from its entrance, a cell a step, and never through a wall.

    difflogic train difflogic-tasks:maze

When the wave reaches a cell says how far that is. Whoever walks back from the exit, always to a neighbour that the
wave reached a step earlier, has found the shortest way.
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
"""When a wave reaches a cell that it does not reach."""
SIDES = ((0, 1), (1, 0), (0, -1), (-1, 0))
WALL, FREE, WAY = np.array([[40, 40, 40], [250, 250, 250], [220, 60, 40]], dtype=np.uint8)


@dataclass(frozen=True)
class Maze(Task):
    """The wave that finds the way through a maze."""

    version = "1"
    size: int = setting(5, "Rooms a side; the grid has a wall around and between them", least=2, most=40)
    open_walls: int = setting(3, "Walls that are taken out beyond those that join all rooms", least=0, most=400)
    steps_judged: int = setting(6, "CA steps, each of which is judged", least=1, most=400)

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
        films = list(waves(wave, free, self.steps_judged))
        x = np.stack([wave, 1 - free], axis=-1)
        return Dataset.of(x, np.stack(films[1:], axis=1)[..., None], range(1, self.steps_judged + 1))

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        """Mazes whose every cell is reached at the right step, of those whose exit is reached in time."""
        right = (states[..., 0] == samples.y[..., 0]).all(axis=(1, 2, 3))
        reached = samples.y[:, -1, -2, -2, 0] == 1
        return {"right waves": float(right.mean()), "mazes with an exit in reach": float(reached.mean())}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        return {f"maze-{number + 1}": _drawn(each) for number, each in enumerate(film[:3, ..., :2])}

    def _free(self, rng: np.random.Generator) -> Bits:
        """`[2 * size + 1] * 2`, 1 where one can go: a tree of rooms by Kruskal, and some walls less."""
        side, rooms = 2 * self.size + 1, np.arange(self.size**2).reshape(self.size, self.size)
        free = np.zeros((side, side), dtype=np.uint8)
        free[1::2, 1::2] = 1
        doors = [(row, column, axis) for row, column in np.ndindex(self.size, self.size) for axis in (0, 1)
                 if (row, column)[axis] + 1 < self.size]  # fmt: skip
        left = self.open_walls
        for number in rng.permutation(len(doors)):
            row, column, axis = doors[number]
            here, there = rooms[row, column], rooms[row + (axis == 0), column + (axis == 1)]
            if here == there and left == 0:
                continue
            left -= here == there
            rooms[rooms == there] = here
            free[2 * row + 1 + (axis == 0), 2 * column + 1 + (axis == 1)] = 1
        return free


def waves(wave: Bits, free: Bits, steps: int) -> list[Bits]:
    """The wave `[N, H, W]` at the beginning and after each step."""
    film = [wave]
    for _ in range(steps):
        around = np.pad(film[-1], ((0, 0), (1, 1), (1, 1)))
        film.append(free & (around[:, 1:-1, 1:-1] | around[:, :-2, 1:-1] | around[:, 2:, 1:-1]
                            | around[:, 1:-1, :-2] | around[:, 1:-1, 2:]))  # fmt: skip
    return film


def way(arrival: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """From the exit back to the entrance, by when the wave reached each cell `[H, W]`; empty where it found no exit."""
    place = (arrival.shape[0] - 2, arrival.shape[1] - 2)
    found = []
    while arrival[place] < NEVER:
        found.append(place)
        steps = [(place[0] + down, place[1] + right) for down, right in SIDES]
        earlier = [each for each in steps if arrival[each] == arrival[place] - 1]
        if not earlier:
            break
        place = earlier[0]
    return found


def _drawn(film: Bits) -> npt.NDArray[np.uint8]:
    """The maze `[T+1, H, W, 2]` with what the wave reached, the later the darker, and the way back from the exit."""
    wave, wall = film[..., 0] == 1, film[0, ..., 1] == 1
    arrival = np.where(wave.any(axis=0), wave.argmax(axis=0), NEVER)
    shade = np.clip(1 - arrival / (2 * len(film)), 0, 1)[..., None] * np.array([150, 200, 255])
    cells = np.where(wall[..., None], WALL, np.where(arrival[..., None] < NEVER, shade, FREE)).astype(np.uint8)
    for place in way(arrival):
        cells[place] = WAY
    return cells
