"""Controllers of trained agents: taken from a run, played on fresh episodes, and pruned to what they meet."""

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
from difflogic.policies.environments import Spaces, make
from difflogic.policies.environments import spaces as spaces_of
from difflogic.policies.evaluate import Score, evaluate_policy

MEETING, FRESH, TRYING = 1 << 21, 1 << 22, 3 << 21
"""Added to seeds: episodes in which codes are met, those that test a pruned controller, and those that choose it."""
SHARES = (0.9995, 0.998, 0.995, 0.99, 0.98, 0.96, 0.93, 0.9, 0.85, 0.8)
"""Of the steps in which a pruned controller is sure to do the same, tried in turn."""
TRIALS = 3
"""So many times the episodes of the test choose: who fails once in a hundred must not be chosen."""
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
"""What observations and actions are called, as the documentation of gymnasium calls them."""


def of_actor(actor: Actor, identifier: str, spaces: Spaces) -> Controller:
    """The controller of an actor of gates with discrete actions. Raises UsageError for another."""
    if spaces.continuous or not isinstance(actor, LogicActor):
        raise UsageError(
            "A controller decides between discrete actions by gates: this agent "
            f"{'gives continuous actions' if spaces.continuous else 'is a dense network'}."
        )
    seen, done = WORDS.get(identifier.partition("-")[0], (None, None))
    return Controller.from_gates(
        actor.thermometer,
        actor.decision(),
        spaces.actions if done is None or len(done) != spaces.actions else done,
        None if seen is None or len(seen) != spaces.observations - spaces.memory else seen,
        identifier,
        version("gymnasium"),
        spaces.memory,
    )


def decider(controller: Controller) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """The controller as a policy. Raises ConfigError, UsageError where its environment is another."""
    environment = make(controller.environment)
    spaces = spaces_of(environment, controller.environment, controller.memory)
    environment.close()
    if (spaces.observations, spaces.actions) != (len(controller.observations), len(controller.choices)):
        raise UsageError(
            f"The controller has {len(controller.observations)} observations and {len(controller.choices)} actions, "
            f"but {controller.environment} has {spaces.observations} and {spaces.actions}."
        )
    return controller


def score(controller: Controller, episodes: int, seed: int) -> Score:
    """Returns of whole episodes. Raises UsageError where the controller does not know its environment."""
    if not controller.environment:
        raise UsageError("This controller does not say which environment it is for.")
    return evaluate_policy(decider(controller), controller.environment, episodes, seed, memory=controller.memory)


def codes_met(controller: Controller, episodes: int, seed: int) -> tuple[Bits, npt.NDArray[np.float64]]:
    """The codes that episodes meet, uint8 `[bits, N]`, the most frequent first, and their shares of the steps."""
    met: Counter[bytes] = Counter()

    def watch(seen: npt.NDArray[Any], _: object) -> None:
        met.update(row.tobytes() for row in controller.thermometer.code(seen).T)

    evaluate_policy(decider(controller), controller.environment, episodes, seed, watch, controller.memory)
    rows, counts = zip(*met.most_common(), strict=True)
    codes = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1).T
    return codes, np.array(counts) / sum(counts)


@dataclass(frozen=True)
class PrunedController:
    """A controller that is right where it was met, and what it and the one before reach on fresh episodes."""

    smaller: Simplified[Controller]
    codes: int
    """Codes at which it does the same, the most frequent ones..."""
    met: int
    """...of those that were met."""
    before: Score
    after: Score

    @property
    def words(self) -> str:
        """Return what pruning came to."""
        before, after, count = self.before, self.after, len(self.after.returns)
        return (
            f"the same on the most frequent {self.codes} of the {self.met} codes that {count} episodes met; elsewhere "
            f"it may differ. On {count} other episodes: mean return {after.mean:.1f} +- {after.spread:.1f}, before "
            f"{before.mean:.1f} +- {before.spread:.1f}."
        )

    @property
    def is_worse(self) -> bool:
        """Return whether the mean return fell by more than twice what chance makes of so many episodes."""
        noise = math.hypot(self.before.spread, self.after.spread) / math.sqrt(len(self.after.returns))
        return self.after.mean < self.before.mean - 2 * noise


def pruned(controller: Controller, episodes: int, seed: int, on_pass: OnPass = silent) -> PrunedController:
    """Prune to the codes that `episodes` meet, and test on as many others, the same for both.

    The rarest of the codes may then be decided otherwise, ever more of them while no return is lost on further
    episodes.
    """
    codes, shares = codes_met(controller, episodes, seed + MEETING)
    trials = TRIALS * episodes, seed + TRYING
    count, found = codes.shape[1], synthesis.pruned(controller, codes, on_pass)
    least = score(controller, *trials).mean
    for share in SHARES:
        # The fewest codes with that share of the steps: of the shares 0.6, 0.3 and 0.1, two make up 0.85.
        kept = 1 + int(np.searchsorted(shares.cumsum(), share))
        if kept >= count or found.stopped:
            continue
        # What was found already reads fewer thresholds: of the codes, which have all, it takes the rows of these.
        rows = [controller.input_names.index(name) for name in found.netlist.input_names]
        tried = synthesis.pruned(found.netlist, codes[rows, :kept], on_pass)
        if tried.stopped or score(tried.netlist, *trials).mean < least:
            break
        count, found = kept, tried
    before, after = (score(each, episodes, seed + FRESH) for each in (controller, found.netlist))
    return PrunedController(found, count, codes.shape[1], before, after)
