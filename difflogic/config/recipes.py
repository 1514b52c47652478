"""Recipes of training: what is changed in a preset so that training succeeds.

`paper` changes nothing. `robust` was found by experiment, and `benchmarks/success.md` says how often each succeeds:
a wiring per perception kernel, a faster start, for boards on smaller grids, for the lizard one that leads everywhere
(`difflogic.core.wiring.moore_start`) and a search at the end (`difflogic.engine.search`), and stochastic hardening
(`difflogic.engine.events`), spread over the epochs that a run has.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from difflogic.config.choices import RECIPES
from difflogic.config.fields import hint
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.errors import ConfigError


@dataclass(frozen=True)
class Recipe:
    """Fields of `train` that it sets; epochs are shares of all."""

    hardening: float
    grows: tuple[float, float]
    """Between which hardening does."""
    train: dict[str, Any] = field(default_factory=dict)
    grids: tuple[tuple[float, int, int], ...] = ()
    """Until when, sides and CA steps of the smaller grids."""
    falls: tuple[float, float] | None = None
    """Between which the learning rate does, to `lr_end` of `train`."""
    all_round: bool = False
    settles: float | None = None
    """The share of epochs after which the hard circuit is searched."""

    def applied(self, config: Config) -> Config:
        begin, end = _epochs(self.grows, config)
        growth: dict[str, Any] = {"hardening": self.hardening, "harden_from": begin, "harden_to": end}
        until = [round(share * config.train.epochs) for share, *_ in self.grids]
        few = any(a >= b for a, b in itertools.pairwise([0, *until]))
        if self.grids and not few and self._fits(config.task):
            sides, steps = ([grid[index] for grid in self.grids] for index in (1, 2))
            growth |= {"growth_until": until, "growth_sides": sides, "growth_steps": steps}
        if self.falls is not None:
            growth["lr_from"], growth["lr_to"] = _epochs(self.falls, config)
        if self.settles is not None:
            growth["settle_from"] = max(1, round(self.settles * config.train.epochs))
        model = {"wiring_per_kernel": True, "all_round": self.all_round}
        return config.with_(model=model, train={"initial_logit": 6.0, **self.train, **growth})

    def _fits(self, task: TaskConfig) -> bool:
        """Whether its grids are smaller than the task, and of use to it."""
        room = min(task.height, task.width)
        return task.can_grow and all(side <= room and steps <= task.steps for _, side, steps in self.grids)


def _epochs(shares: tuple[float, float], config: Config) -> tuple[int, int]:
    """The first and the last epoch of such a span, which lasts at least one."""
    begin, end = (round(share * config.train.epochs) for share in shares)
    return begin, max(end, begin + 1)


_BOARD = Recipe(
    0.8,
    (0.1, 0.36),
    {"lr": 0.2, "weight_decay": 0.03, "batch": 1, "epsilon": 1e-6, "narrow_drop": 1.5, "logit_noise": 0.5},
    ((0.12, 8, 9), (0.2, 12, 14)),
)
ROBUST = {
    "game-of-life": Recipe(0.8, (0.1, 0.4333)),
    "checkerboard": _BOARD,
    "checkerboard-small": _BOARD,
    "checkerboard-async": Recipe(0.8, (0.1875, 0.8125), {"lr": 0.1, "narrow_drop": 3.0}),
    "lizard": Recipe(
        0.8,
        (0.2286, 0.8),
        {"initial_logit": 9.0, "epsilon": 1e-9, "weight_decay": 0.005, "lr_end": 0.3333},
        falls=(0.5714, 0.8),
        all_round=True,
        settles=0.5714,
    ),
    "colored-g": Recipe(0.8, (0.13, 0.66)),
}
"""The recipe `robust` of each preset, by its name."""


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
            "set the fields of model and train that it changes yourself (difflogic presets NAME shows them)."
        )
    return ROBUST[config.name].applied(config)
