"""Recipes of training: changes of a configuration that make training succeed.

The recipe `paper` changes nothing. The recipe `robust` results from experiments (`docs/results/success.md`). Each
perception kernel has its own wiring, and initial logits are lower. Boards have smaller grids and learned wiring, larger
images have more steps, and the wiring of images that grow from one cell passes signals in all directions
(`difflogic.core.wiring.begin_all_round`). Boards, rules and samples are trained with stochastic hardening
(`difflogic.engine.events`), and images are trained briefly before a search (`difflogic.engine.search`).

The function `robust` chooses changes for a task. Fields that differ from the paper's values are not changed.
"""

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
from difflogic.core import rules, wiring
from difflogic.errors import ConfigError

RESTARTS = frozenset({"robust"})
"""Recipes with which stalled training restarts by default, see `train.run_request.resolved`."""
HARDENED = 0.8
"""Final share of hardened gates without a search."""
SEARCHED = 0.4
"""Final share of hardened gates before a search. Without hardening, the hard circuit deviates from the soft one
in long training; with a share of 0.6, some images are hardly learned."""
LARGE = 2000
"""Number of target values above which an image needs more training; the lizard has 400."""
CELLS = 1152
"""Number of cells in a training step for a rule other than Life: 128 boards of 3x3 cells. With few of the 512
neighbourhoods in a step, a circuit unlearns the other ones."""


@dataclass(frozen=True)
class Recipe:
    """Changes of a configuration, in which epochs are shares of the number of epochs of a run."""

    hardened: tuple[float, float] | None = None
    """Begin and end of the epochs in which hardening grows to HARDENED or SEARCHED; None for no hardening."""
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    grids: tuple[tuple[float, int, int], ...] = ()
    """Last epoch (as a share), side and CA steps of each smaller grid."""
    all_round: bool = False
    searched: float | None = None
    """Share of the epochs after which the search of the hard circuit begins; None for no search."""

    def applied(self, config: Config) -> Config:
        sections: dict[str, dict[str, Any]] = {
            "model": {"wiring_per_kernel": True, "all_round": self.all_round and _has_room_all_round(config.model)},
            "initial": {"logit": 6.0},
        }
        # A configuration with its own hardening or search keeps its schedule.
        if not (config.hardening.share or config.search.begin):
            if self.hardened is not None:
                final = HARDENED if self.searched is None else SEARCHED
                begin, end = (round(share * config.train.epochs) for share in self.hardened)
                sections["hardening"] = {"share": final, "begin": begin, "end": max(end, begin + 1)}
            # With shares of epochs, a run with a third of the epochs has the same schedule, three times as fast.
            if self.searched is not None:
                sections["search"] = {"begin": max(1, round(self.searched * config.train.epochs))}
        # With very few epochs two grids would end at the same epoch.
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
        task = config.task
        fits = all(side <= task.shortest_side and steps <= task.steps for _, side, steps in self.grids)
        return fits and task.can_grow and not config.pool.size


def _where_usual(sections: dict[str, dict[str, Any]], config: Config) -> dict[str, dict[str, Any]]:
    """Return the fields of `sections` for which `config` has the paper's value, and those without a default."""
    usual_fields: dict[str, dict[str, Any]] = {}
    for name, fields in sections.items():
        # The paper uses another learning rate for images.
        section, of_images = getattr(config, name), getattr(presets.lizard(), name)
        usual = {f.name: (f.default, getattr(of_images, f.name)) for f in dataclasses.fields(section)}
        usual_fields[name] = {
            key: value
            for key, value in fields.items()
            if usual[key][0] is dataclasses.MISSING or getattr(section, key) in usual[key]
        }
    return usual_fields


def _has_room_all_round(model: ModelConfig) -> bool:
    first, *others = model.perceive.connections
    is_large = model.kernels >= wiring.ALL_ROUND_KERNELS and model.neighbourhood == "moore"
    return is_large and first == "first_kernel" and bool(others)


def is_other_rule(task: TaskConfig) -> bool:
    """Return whether the target is a rule other than Life, the rule of the paper."""
    return task.target == "rule" and rules.bounds(task.rule)[0] != presets.game_of_life().task.rule


def _steps_of_picture(config: Config) -> int:
    """Return the CA steps for a preset's image, in proportion to its size, or 0 if the configuration sets steps.

    A signal moves one cell per step: the preset `lizard` grows 20x20 cells in 12 steps, so 40x30 cells get 24 steps.
    """
    if config.task.target != "picture" or config.name not in presets.PRESETS:
        return 0
    task, own = config.task, presets.get(config.name).task
    if task.steps != own.steps or task.loss_steps or task.damage_steps:
        return 0
    return math.ceil(own.steps * max(task.height, task.width) / max(own.height, own.width))


_BOARD_FIELDS: dict[str, dict[str, Any]] = {
    "model": {"candidates": 2},
    "train": {"batch": 1},
    "optimizer": {"lr": 0.2, "weight_decay": 0.03, "epsilon": 1e-6},
    "initial": {"narrow_drop": 1.5, "noise": 0.5},
}
# An epoch on 8x8 cells costs a ninth of one on 16x16, and a circuit that is exact there is nearly always exact on every
# grid. So most attempts begin and stop on the smallest grid, and only nearly solved ones continue on the task's grid.
_BOARD = Recipe((0.06, 0.24), _BOARD_FIELDS, grids=((0.4, 8, 9),))
_ASYNCHRONOUS = Recipe((0.05, 0.2), _BOARD_FIELDS, grids=((0.3, 8, 22),))
_RULE = Recipe((0.1, 0.4333))
# The search corrects a hard circuit with a tenth of wrong cells, and an epoch of search takes as long as one or two
# train steps. So training may end far from a solution, with unconverged gates. Input-wise gates learn in a hundred
# epochs what sixteen logits learn in seven hundred.
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
"""Recipe for images without a search: those with damage, a sample pool or fixed channels."""


def robust(config: Config) -> Recipe:
    """Return the variant of the recipe `robust` for a configuration."""
    task = config.task
    if not task.is_fixed:
        return _RULE
    if task.target == "checkerboard":
        return _ASYNCHRONOUS if config.train.asynchronous else _BOARD
    if not config.can_be_searched:
        return _UNSEARCHED
    # On a grid of zeros, signals come from the whole border; a single cell sends few.
    if task.start == "zeros":
        return _BORDERED
    return _LARGE if task.height * task.width * task.loss_channels > LARGE else _GROWN


def usual(config: Config) -> str:
    """Return the default recipe: `paper` if the configuration sets hardening or a search, otherwise `robust`."""
    return "paper" if config.hardening.share or config.search.begin else "robust"


def applied(name: str, config: Config) -> Config:
    """Apply the recipe `name` to `config`, which must already have the run's number of epochs. Raises ConfigError."""
    if name not in RECIPES:
        raise ConfigError(f"Unknown recipe {name!r}{hint(name, RECIPES)}: expected one of {', '.join(RECIPES)}.")
    if name == "paper":
        return config
    return robust(config).applied(config)
