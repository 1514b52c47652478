"""Make controllers from trained actors, score controllers on new episodes, and prune controllers."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis import function as synthesis
from difflogic.circuits.synthesis.simplify import OnPass, Simplified, silent
from difflogic.core.bits import Bits
from difflogic.errors import UsageError
from difflogic.model.controller import Controller
from difflogic.policies.actors import Actor, LogicActor
from difflogic.policies.environments import Spaces, spaces_of
from difflogic.policies.evaluate import Score, evaluate_policy

MEETING, FRESH, TRYING = 1 << 21, 1 << 22, 3 << 21
"""Seed offsets of the episodes for collecting codes, for testing a pruned controller, and for selecting it."""
SHARES = (0.9995, 0.998, 0.995, 0.99, 0.98, 0.96, 0.93, 0.9, 0.85, 0.8)
"""Shares of steps in which a pruned controller must decide like the original, tried in this order."""
TRIALS = 3
"""Number of selection episodes per test episode, to reject a controller that fails in one of a hundred episodes."""
WORDS = {
    "CartPole": (("position", "velocity", "angle", "angular_velocity"), ("left", "right")),
    "Acrobot": (
        ("cos_1", "sin_1", "cos_2", "sin_2", "angular_velocity_1", "angular_velocity_2"),
        ("backward", "idle", "forward"),
    ),
    "LunarLander": (
        ("x", "y", "velocity_x", "velocity_y", "angle", "angular_velocity", "left_leg", "right_leg"),
        ("idle", "left_engine", "main_engine", "right_engine"),
    ),
    "MountainCar": (("position", "velocity"), ("left", "idle", "right")),
}
"""Mapping from environment names to names of observations and actions, from Gymnasium's documentation."""


def of_actor(actor: Actor, identifier: str, spaces: Spaces) -> Controller:
    """Convert an actor of gates with discrete actions to a controller. Raises UsageError for any other actor."""
    if spaces.continuous or not isinstance(actor, LogicActor):
        raise UsageError(
            "Only agents of gates with discrete actions can be controllers, but this agent "
            f"{'has continuous actions' if spaces.continuous else 'is a dense network'}."
        )
    observations, actions = WORDS.get(identifier.partition("-")[0], ((), ()))
    names = observations if len(observations) == spaces.observations - spaces.memory else None
    choices = actions if len(actions) == spaces.actions else spaces.actions
    decision, gymnasium = actor.decision(), version("gymnasium")
    return Controller.from_gates(actor.thermometer, decision, choices, names, identifier, gymnasium, spaces.memory)


def decider(controller: Controller) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """Return the controller as a policy for its environment. Raises UsageError if sizes differ, or ConfigError."""
    spaces = spaces_of(controller.environment, controller.memory)
    if (spaces.observations, spaces.actions) != (len(controller.observations), len(controller.choices)):
        raise UsageError(
            f"The controller has {len(controller.observations)} observations and {len(controller.choices)} actions, "
            f"but {controller.environment} has {spaces.observations} and {spaces.actions}."
        )
    return controller


def score(controller: Controller, episodes: int, seed: int) -> Score:
    """Score a controller on complete episodes of its environment. Raises UsageError if it names no environment."""
    if not controller.environment:
        raise UsageError("This controller names no environment: set `environment` in its file, such as CartPole-v1.")
    return evaluate_policy(decider(controller), controller.environment, episodes, seed, memory=controller.memory)


def codes_met(controller: Controller, episodes: int, seed: int) -> tuple[Bits, npt.NDArray[np.float64]]:
    """Return the N thermometer codes seen in episodes, most frequent first, uint8 `[bits, N]`, and their shares."""
    counter: Counter[bytes] = Counter()

    def watch(seen: npt.NDArray[Any], _: object) -> None:
        counter.update(row.tobytes() for row in controller.thermometer.code(seen).T)

    evaluate_policy(decider(controller), controller.environment, episodes, seed, watch, controller.memory)
    rows, counts = zip(*counter.most_common(), strict=True)
    codes = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1).T
    return codes, np.array(counts) / sum(counts)


@dataclass(frozen=True)
class PrunedController:
    """Pruned controller, with scores of the original (`before`) and of itself (`after`) on new episodes."""

    smaller: Simplified[Controller]
    codes: int
    """Number of codes, the most frequent ones, for which the pruned controller decides like the original."""
    met: int
    """Total number of codes that occurred in episodes."""
    before: Score
    after: Score

    @property
    def words(self) -> str:
        """Description of the result for users."""
        before, after, count = self.before, self.after, len(self.after.returns)
        return (
            f"decisions are unchanged for the {self.codes} most frequent of {self.met} codes seen in {count} episodes, "
            f"and may differ for all others. Mean return on {count} new episodes: {after.mean:.1f} +- "
            f"{after.spread:.1f}, before {before.mean:.1f} +- {before.spread:.1f}."
        )

    @property
    def is_worse(self) -> bool:
        """True if pruning decreased the mean return by more than two standard errors."""
        noise = math.hypot(self.before.spread, self.after.spread) / math.sqrt(len(self.after.returns))
        return self.after.mean < self.before.mean - 2 * noise


def pruned(controller: Controller, episodes: int, seed: int, on_pass: OnPass = silent) -> PrunedController:
    """Prune a controller; test the original and the pruned controller on `episodes` new episodes each.

    First, only decisions for codes that do not occur in `episodes` episodes may change. Then decisions for rare codes
    may change too, for more and more codes until the mean return on a third set of episodes falls.
    """
    codes, shares = codes_met(controller, episodes, seed + MEETING)
    trials = TRIALS * episodes, seed + TRYING
    count, smaller = codes.shape[1], synthesis.pruned(controller, codes, on_pass)
    least = score(controller, *trials).mean
    for share in SHARES:
        # Take the fewest codes with that share of the steps: if codes have 0.6, 0.3 and 0.1, a share of 0.85 needs two.
        fewer = 1 + int(np.searchsorted(shares.cumsum(), share))
        if fewer >= count or smaller.stopped:
            continue
        # A pruned controller reads fewer thresholds, so take only the rows of these thresholds from the codes.
        rows = [controller.input_names.index(name) for name in smaller.netlist.input_names]
        attempt = synthesis.pruned(smaller.netlist, codes[rows, :fewer], on_pass)
        if attempt.stopped or score(attempt.netlist, *trials).mean < least:
            break
        count, smaller = fewer, attempt
    before, after = (score(one, episodes, seed + FRESH) for one in (controller, smaller.netlist))
    return PrunedController(smaller, count, codes.shape[1], before, after)
