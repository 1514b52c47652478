"""Draw animations of episodes: images of the environment above a controller's bits or an automaton's grids."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.errors import ConfigError, MissingPackagesError, UsageError
from difflogic.model.controller import Controller
from difflogic.policies.automaton import AutomatonActor
from difflogic.policies.environments import from_action, in_a_box, library, spaces
from difflogic.policies.evaluate import Decide
from difflogic.runs import film, plots

if TYPE_CHECKING:
    from difflogic.policies.member import Member

Pixels = npt.NDArray[np.uint8]
Below = Callable[[npt.NDArray[Any], int], Pixels]
"""Function that draws a policy's state for observations `[N, D]`, RGB `[N, h, width, 3]` for the given width."""

FRAMES = 200
"""Maximum number of frames of an animation; a longer episode is reduced to evenly spaced frames."""
SIDE, SPACE = 10, 2
"""Side of the square for a bit, and gap between squares, in pixels."""
BACKGROUND, DARK, READ, LIT = (24, 24, 28), (60, 60, 68), (96, 190, 255), (255, 208, 64)


def episode(
    decide: Decide, identifier: str, seed: int, steps: int, below: Below | None = None, memory: int = 0
) -> Pixels:
    """Draw an episode of at most `steps` steps, RGB `[n, h, w, 3]`; `below` draws the policy's state below each frame.

    `memory` has the same meaning as in `evaluate_policy`. Raises UsageError if the environment cannot be drawn, or
    MissingPackagesError if a package for drawing is not installed.
    """
    gym = library()
    try:
        environment = in_a_box(gym.make(identifier, render_mode="rgb_array"))
        observation, _ = environment.reset(seed=seed)
        frames, rows = [environment.render()], [np.asarray(observation, dtype=np.float32).reshape(-1)]
    except gym.error.DependencyNotInstalled as error:
        raise MissingPackagesError(
            f"Drawing {identifier} needs a missing package (the extra `rl` installs those of classic environments): "
            f"{error}"
        ) from error
    except Exception as error:
        raise UsageError(f"{identifier} cannot render its episodes: {type(error).__name__}: {error}") from error
    shape = spaces(environment, identifier, memory)
    rows[0], over = np.pad(rows[0], (0, memory)), False
    while not over and len(frames) <= steps:
        action = decide(rows[-1][None])[0]
        observation, _, terminated, truncated, _ = environment.step(from_action(shape, action))
        over = bool(terminated or truncated)
        frames.append(environment.render())
        rows.append(shape.row(observation, action))
    environment.close()
    chosen = np.unique(np.linspace(0, len(frames) - 1, min(FRAMES, len(frames))).astype(int))
    images = np.stack([frames[index] for index in chosen]).astype(np.uint8)
    if below is None:
        return images
    return np.concatenate([images, below(np.stack(rows)[chosen], images.shape[2])], axis=1)


def grids(actor: AutomatonActor, observations: npt.NDArray[Any], width: int) -> Pixels:
    """Draw the automaton's grids before and after each step of a decision, side by side, RGB `[N, h, width, 3]`."""
    colors = plots.colors(actor.states(actor.features(observations)))
    steps, count, side = colors.shape[:3]
    scale = max(1, (width - SPACE) // steps // side - 1)
    images = colors.repeat(scale, axis=2).repeat(scale, axis=3)
    canvas = np.empty((count, 2 * SPACE + scale * side, width, 3), dtype=np.uint8)
    canvas[:] = BACKGROUND
    for step, left in enumerate(np.linspace(SPACE, width - SPACE - scale * side, steps).astype(int)):
        canvas[:, SPACE:-SPACE, left : left + scale * side] = images[step]
    return canvas


def of_agent(member: Member, steps: int, controller: Controller | None, seed: int | None = None) -> Pixels:
    """Draw an episode of an agent above its grids or the controller's bits; the default `seed` is the agent's.

    Raises ConfigError for a classifier.
    """
    config, agent = member.config.require_episodes(), member.agent
    below = None if controller is None else partial(lamps, controller)
    if isinstance(agent.actor, AutomatonActor):
        below = partial(grids, agent.actor)
    seed = member.seed if seed is None else seed
    return episode(agent.decide, config.environment.id, seed, steps, below, config.gates.memory)


def lamps(controller: Controller, observations: npt.NDArray[Any], width: int) -> Pixels:
    """Draw a controller's bits, RGB `[N, h, width, 3]`: thresholds in one row per observed number, then gates."""
    code = controller.thermometer.code(observations)
    bits = unpack_bits(controller.program.all_bits(pack_bits(code)), len(observations))
    row, rows = max(1, (width - SPACE) // (SIDE + SPACE)), []
    starts = np.cumsum([0, *(len(values) for values in controller.thermometer.thresholds)])
    for begin, end in itertools.pairwise(starts):
        rows += [range(k, min(k + row, end)) for k in range(begin, end, row)]
    gates = range(controller.inputs, len(bits))
    rows += [gates[k : k + row] for k in range(0, len(gates), row)]
    height = SPACE + len(rows) * (SIDE + SPACE)
    canvas = np.empty((len(observations), height, width, 3), dtype=np.uint8)
    canvas[:] = BACKGROUND
    for place, bits_of_row in enumerate(rows):
        for column, bit in enumerate(bits_of_row):
            top, left = SPACE + place * (SIDE + SPACE), SPACE + column * (SIDE + SPACE)
            lit = np.array(READ if bit < controller.inputs else LIT, dtype=np.uint8)
            shade = np.where(bits[bit][:, None] == 1, lit, np.array(DARK, dtype=np.uint8))
            canvas[:, top : top + SIDE, left : left + SIDE] = shade[:, None, None]
    return canvas


def encoded(frames: Pixels, suffix: str, frame_ms: int) -> bytes:
    """Encode frames as `.gif` or `.apng`, with `frame_ms` per frame. Raises ConfigError for any other `suffix`."""
    kinds = {".gif": "gif", ".apng": "apng"}
    if suffix not in kinds:
        raise ConfigError(f"An animation of an episode must be a .gif or .apng file, got {suffix!r}.")
    return film.animation(frames, kinds[suffix], 1, frame_ms)
