"""Recipes of training: what is changed in a configuration so that training succeeds.

`paper` changes nothing. `robust` was found by experiment, and `docs/results/success.md` says how often each succeeds:
a wiring per perception kernel, a faster start, for boards on a smaller grid, for larger pictures more steps, for those
that grow from a cell a wiring that leads everywhere (`difflogic.core.wiring.begin_all_round`); for boards, rules and
samples stochastic hardening (`difflogic.engine.events`), spread over the epochs that a run has, for pictures a search
that follows a short training (`difflogic.engine.search`). It begins again where training stalls (`RESTARTS`).

It is chosen by what the task is (`robust`), and what a configuration sets otherwise than the paper stays as it is.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass, field
from typing import Any

from difflogic.config import presets
from difflogic.config.choices import RECIPES
from difflogic.config.fields import hint, merged
from difflogic.config.model import ModelConfig
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.core import wiring
from difflogic.errors import ConfigError

RESTARTS = frozenset({"robust"})
"""Recipes by which a training makes as many attempts as share its epochs, unless it is said how many:
`train.run_request.resolved`."""
HARDENED = 0.8
"""The share of gates that are hardened at last..."""
SEARCHED = 0.4
"""...and where the hard circuit is searched afterwards: without it long training would part that from the soft one, and
of 0.6 some pictures were hardly learned."""
LARGE = 2000
"""Of a picture with more values than this hardly anything is learned in the time that suits the lizard's 400."""
CELLS = 1152
"""Of a train step of rules other than Life: one that sees few of 512 neighbourhoods forgets the others again. They are
those of 128 boards of 3x3."""


@dataclass(frozen=True)
class Recipe:
    """A recipe sets fields of a configuration; epochs are given as shares of all that a run has."""

    hardened: tuple[float, float] | None = None
    """Between which hardening grows, to HARDENED, or SEARCHED; None: a search alone decides what gates become."""
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By section."""
    grids: tuple[tuple[float, int, int], ...] = ()
    """Until when, sides and CA steps of the smaller grids."""
    all_round: bool = False
    searched: float | None = None
    """From when the hard circuit is searched."""

    def applied(self, config: Config) -> Config:
        sections: dict[str, dict[str, Any]] = {
            "model": {"wiring_per_kernel": True, "all_round": self.all_round and _has_room_all_round(config.model)},
            "initial": {"logit": 6.0},
        }
        # Whoever says how gates are decided has made a schedule, of which no part goes with another.
        if not (config.hardening.share or config.search.begin):
            if self.hardened is not None:
                share = HARDENED if self.searched is None else SEARCHED
                sections["hardening"] = {"share": share, **_epochs(self.hardened, config)}
            # Shares and not epochs: a run of a third of the length should do the same in a third of the time.
            if self.searched is not None:
                sections["search"] = {"begin": max(1, round(self.searched * config.train.epochs))}
        # With very few epochs two grids would end at the same one: then it does not grow at all.
        until = [round(share * config.train.epochs) for share, *_ in self.grids]
        few = any(a >= b for a, b in itertools.pairwise([0, *until]))
        if self.grids and not few and not config.growth.until and self._fits(config):
            sides, steps = ([grid[index] for grid in self.grids] for index in (1, 2))
            sections["growth"] = {"until": until, "sides": sides, "steps": steps}
        if is_other_rule(config.task):
            sections["train"] = {"batch": max(1, CELLS // (config.task.height * config.task.width))}
        if (enough := _steps_of_picture(config)) > config.task.steps:
            sections["task"] = {"steps": enough}
        return config.with_(**_where_usual(merged(sections, self.fields), config))

    def _fits(self, config: Config) -> bool:
        """Return whether its grids are smaller than the task, and of use to it."""
        task, room = config.task, config.task.shortest_side
        fits = all(side <= room and steps <= task.steps for _, side, steps in self.grids)
        return fits and task.can_grow and not config.pool.size


def _where_usual(sections: dict[str, dict[str, Any]], config: Config) -> dict[str, dict[str, Any]]:
    """Those fields that the configuration leaves as the paper has them, or has to set."""
    found: dict[str, dict[str, Any]] = {}
    for name, fields in sections.items():
        # The paper's pictures have a learning rate of their own.
        section, of_pictures = getattr(config, name), getattr(presets.lizard(), name)
        usual = {each.name: (each.default, getattr(of_pictures, each.name)) for each in dataclasses.fields(section)}
        found[name] = {
            key: value
            for key, value in fields.items()
            if usual[key][0] is dataclasses.MISSING or getattr(section, key) in usual[key]
        }
    return found


def _has_room_all_round(model: ModelConfig) -> bool:
    """Return whether perception can begin with all neighbours of a cell."""
    schemes = model.perceive.connections
    enough = model.kernels >= wiring.ALL_ROUND_KERNELS and model.neighbourhood == "moore"
    return enough and schemes[0] == "first_kernel" and len(schemes) > 1


def is_other_rule(task: TaskConfig) -> bool:
    """Return whether a rule is learned that is not the paper's, Life."""
    return task.target == "rule" and task.rule != presets.game_of_life().task.rule


def _steps_of_picture(config: Config) -> int:
    """The steps for a picture: as many as in the preset, and more in proportion for a larger one; 0 if they are set
    already, as in a configuration that is no preset.

    A signal moves one cell a step. The lizard's 20x20 cells have 12 steps, so that a picture of 40x30 has 24.
    """
    if config.task.target != "picture" or config.name not in presets.PRESETS:
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
_ASYNCHRONOUS = Recipe((0.05, 0.2), _BOARD_FIELDS, grids=((0.3, 8, 22),))
_RULE = Recipe((0.1, 0.4333))
# The search mends a hard circuit that is a tenth wrong, and an epoch of it takes no longer than a train step or two. So
# training need neither go on until the picture is nearly right, nor decide its gates. Input-wise gates learn in a
# hundred epochs what sixteen logits learn in seven hundred.
_GROWN = Recipe(
    fields={
        "model": {"input_wise": True},
        "optimizer": {"lr": 0.15, "epsilon": 1e-9, "weight_decay": 0.005},
        "initial": {"logit": 9.0},
    },
    all_round=True,
    searched=0.03,
)
_BORDERED = Recipe(
    fields={"model": {"input_wise": True}, "optimizer": {"lr": 0.2}, "initial": {"logit": 7.0}}, searched=0.04
)
_LARGE = dataclasses.replace(_GROWN, hardened=(0.01, 0.06), searched=0.12)
_UNSEARCHED = Recipe((0.12, 0.68))
"""Of pictures that no search may follow: damaged on the way, begun with earlier ends, or with held channels."""


def robust(config: Config) -> Recipe:
    """The recipe `robust` of a configuration."""
    task = config.task
    if not task.is_fixed:
        return _RULE
    if task.target == "checkerboard":
        return _ASYNCHRONOUS if config.train.asynchronous else _BOARD
    if not config.can_be_searched:
        return _UNSEARCHED
    # From nothing but the border all of it sends signals, and they are many: from one cell they are few.
    if task.start == "zeros":
        return _BORDERED
    return _LARGE if task.height * task.width * task.loss_channels > LARGE else _GROWN


def usual(config: Config) -> str:
    """The recipe where nobody names another: what says itself how its gates are decided is trained as it stands."""
    return "paper" if config.hardening.share or config.search.begin else "robust"


def applied(name: str, config: Config) -> Config:
    """`config` with the recipe of this name; its epochs must be the run's. Raises ConfigError for an unknown recipe."""
    if name not in RECIPES:
        raise ConfigError(f"There is no recipe {name!r}{hint(name, RECIPES)}: expected one of {', '.join(RECIPES)}.")
    if name == "paper":
        return config
    return robust(config).applied(config)
