"""Recipes of training: what is changed in a preset so that training succeeds.

`paper` changes nothing. `robust` was found by experiment, and `docs/results/success.md` says how often each succeeds:
a wiring per perception kernel, a faster start, for boards on a smaller grid, for larger pictures more steps, for the
lizard a wiring that leads everywhere (`difflogic.core.wiring.begin_all_round`); for boards and Life stochastic
hardening (`difflogic.engine.events`), spread over the epochs that a run has, for pictures a search that follows a short
training (`difflogic.engine.search`). It begins again where training stalls (`RESTARTS`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

from difflogic.config import presets
from difflogic.config.choices import RECIPES
from difflogic.config.fields import hint, merged
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.errors import ConfigError

RESTARTS = frozenset({"robust"})
"""Recipes by which a training makes as many attempts as share its epochs, unless it is said how many:
`train.run_request.resolved`."""
HARDENED = 0.8
"""The share of gates that are hardened at last."""


@dataclass(frozen=True)
class Recipe:
    """A recipe sets fields of a configuration; epochs are given as shares of all that a run has."""

    hardened: tuple[float, float] | None = None
    """Between which hardening grows, to HARDENED; None: a search decides what gates become."""
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By section."""
    grids: tuple[tuple[float, int, int], ...] = ()
    """Until when, sides and CA steps of the smaller grids."""
    all_round: bool = False
    searched: float | None = None
    """From when the hard circuit is searched."""
    batch_of_rules: int | None = None
    """The batch of rules other than the preset's own: a step that sees few of 512 boards forgets the others again."""

    def applied(self, config: Config) -> Config:
        sections: dict[str, dict[str, Any]] = {
            "model": {"wiring_per_kernel": True, "all_round": self.all_round},
            "initial": {"logit": 6.0},
        }
        if self.hardened is not None:
            sections["hardening"] = {"share": HARDENED, **_epochs(self.hardened, config)}
        # With very few epochs two grids would end at the same one: then it does not grow at all.
        until = [round(share * config.train.epochs) for share, *_ in self.grids]
        few = any(a >= b for a, b in itertools.pairwise([0, *until]))
        if self.grids and not few and self._fits(config.task):
            sides, steps = ([grid[index] for grid in self.grids] for index in (1, 2))
            sections["growth"] = {"until": until, "sides": sides, "steps": steps}
        # Shares and not epochs: a run of a third of the length should do the same in a third of the time.
        if self.searched is not None:
            sections["search"] = {"begin": max(1, round(self.searched * config.train.epochs))}
        if self.batch_of_rules is not None and config.task.rule != presets.get(config.name).task.rule:
            sections["train"] = {"batch": self.batch_of_rules}
        if (enough := _steps_of_picture(config)) > config.task.steps:
            sections["task"] = {"steps": enough}
        return config.with_(**merged(sections, self.fields))

    def _fits(self, task: TaskConfig) -> bool:
        """Return whether its grids are smaller than the task, and of use to it."""
        room = task.shortest_side
        return task.can_grow and all(side <= room and steps <= task.steps for _, side, steps in self.grids)


def _steps_of_picture(config: Config) -> int:
    """The steps for a picture: as many as in the preset, and more in proportion for a larger one; 0 if they are set
    already.

    A signal moves one cell a step. The lizard's 20x20 cells have 12 steps, so that a picture of 40x30 has 24.
    """
    if config.task.target != "picture":
        return 0
    task, own = config.task, presets.get(config.name).task
    if task.steps != own.steps or task.loss_steps or task.damage_steps:
        return 0
    return math.ceil(own.steps * max(task.height, task.width) / max(own.height, own.width))


def _epochs(shares: tuple[float, float], config: Config) -> dict[str, int]:
    """The first and the last epoch of such a span, which lasts at least one."""
    begin, end = (round(share * config.train.epochs) for share in shares)
    return {"begin": begin, "end": max(end, begin + 1)}


_BOARD_FIELDS: dict[str, dict[str, Any]] = {
    "train": {"batch": 1},
    "optimizer": {"lr": 0.2, "weight_decay": 0.03, "epsilon": 1e-6},
    "initial": {"narrow_drop": 1.5, "noise": 0.5},
}
# An epoch on 8x8 cells costs a ninth of one on 16x16, and what is exact there is nearly always exact on every grid. So
# the smallest grid is where attempts are made and given up, and the task's own only ends what is nearly done.
_BOARD = Recipe((0.06, 0.24), _BOARD_FIELDS, grids=((0.4, 8, 9),))
ROBUST = {
    "game-of-life": Recipe((0.1, 0.4333), batch_of_rules=128),
    "checkerboard": _BOARD,
    "checkerboard-small": _BOARD,
    "checkerboard-async": Recipe((0.05, 0.2), _BOARD_FIELDS, grids=((0.3, 8, 22),)),
    # The search mends a hard circuit that is a tenth wrong, and an epoch of it costs less than a train step. So
    # training need neither go on until the picture is nearly right, nor decide its gates.
    "lizard": Recipe(
        fields={"optimizer": {"epsilon": 1e-9, "weight_decay": 0.005}, "initial": {"logit": 9.0}},
        all_round=True,
        searched=0.2,
    ),
    "colored-g": Recipe(searched=0.15),
}
"""The recipe `robust` of each preset, by its name."""


def usual(config: Config) -> str:
    """The recipe of a preset, where nobody names another."""
    return "robust" if config.name in ROBUST else "paper"


def applied(name: str, config: Config) -> Config:
    """`config`, a preset whatever its target, with the recipe of this name; its epochs must be the run's.

    Raises ConfigError for an unknown recipe, and where there is none of that name for this configuration.
    """
    if name not in RECIPES:
        raise ConfigError(f"There is no recipe {name!r}{hint(name, RECIPES)}: expected one of {', '.join(RECIPES)}.")
    if name == "paper":
        return config
    if config.name not in ROBUST:
        raise ConfigError(
            f"The recipe robust is made for the presets {', '.join(ROBUST)}, not for {config.name!r}: "
            "set the fields that it changes yourself (difflogic presets NAME shows them)."
        )
    return ROBUST[config.name].applied(config)
