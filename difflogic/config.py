"""What to train and how, as frozen dataclasses that read and write TOML.

Axis letters used everywhere: `B` batch, `H` rows, `W` columns, `C` channels (bits of a cell),
`K` perception kernels, `S` outputs of one perception kernel, `T` CA steps, `M` models (population).
"""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from difflogic import all_round, raster, rules, wiring
from difflogic.errors import ConfigError, DataError
from difflogic.fields import (
    BELOW_ONE,
    FILE_NAME,
    NOT_NEGATIVE,
    SHARE,
    UP_TO_ONE,
    at_least,
    between,
    build,
    check,
    one_of,
    plain,
    require,
    told,
)

MIN_SIDE = 3
"""A grid is at least 3x3: below that a neighbourhood would meet the same cell twice."""
WIDTH = at_least(1)
PRECISIONS = ("float32", "f16-storage")


@dataclass(frozen=True)
class NetworkConfig:
    """A stack of gate layers: `widths[0]` inputs, then one layer per further width."""

    widths: tuple[int, ...] = field(metadata=told("Number of inputs, then of the gates of each layer"))
    connections: tuple[str, ...] = field(
        metadata=told(f"How each layer is wired, one word a layer: {', '.join(wiring.SCHEMES)}")
    )

    def __post_init__(self) -> None:
        require(len(self.widths) >= 2, f"widths needs inputs and at least one layer, got {list(self.widths)}.")
        for width in self.widths:
            require(WIDTH.holds(width), f"each of widths must be {WIDTH.words}, got {width!r}.")
        require(
            len(self.connections) == len(self.widths) - 1,
            f"connections needs one scheme per layer: {len(self.widths) - 1} expected, {len(self.connections)} given.",
        )
        for scheme in self.connections:
            require(
                scheme in wiring.SCHEMES,
                f"Unknown connections {scheme!r}: expected one of {', '.join(wiring.SCHEMES)}.",
            )

    @property
    def gates(self) -> int:
        return sum(self.widths[1:])


@dataclass(frozen=True)
class ModelConfig:
    """The circuit's shape: C channels, K perception kernels, perception and update networks."""

    channels: int = field(metadata=told("Bits of a cell, C", at_least(1)))
    kernels: int = field(metadata=told("Perception kernels, K: each reads the 3x3 patch of every channel", at_least(1)))
    perceive: NetworkConfig = field(metadata=told("A perception kernel: from the 9 cells of a patch to its outputs"))
    update: NetworkConfig = field(
        metadata=told("From the cell and all perception outputs, C + C * outputs * K, to the cell's new C bits")
    )
    periodic: bool = field(default=False, metadata=told("Whether the grid is a torus; else there is 0 outside it"))
    wiring_per_kernel: bool = field(
        default=False,
        metadata=told("Whether each perception kernel has its own wiring; in the paper they share one"),
    )
    all_round: bool = field(
        default=False,
        metadata=told(
            "Whether the first outputs of the first four kernels begin with a diagonal neighbour each, the second one "
            "with one at a side too, by OR, so that signals get everywhere; needs wiring_per_kernel"
        ),
    )

    def __post_init__(self) -> None:
        check(self)
        first, last = self.perceive.widths[0], self.perceive.widths[-1]
        require(first == wiring.PATCH, f"perception reads a 3x3 patch: widths must begin with 9, got {first}.")
        inputs = self.channels + self.channels * last * self.kernels
        require(
            self.update.widths[0] == inputs,
            f"the update network reads the cell and every perception output: its widths must begin with {inputs}, "
            f"got {self.update.widths[0]}.",
        )
        require(
            self.update.widths[-1] == self.channels,
            f"the update network's output is the new cell: its widths must end with {self.channels}, "
            f"got {self.update.widths[-1]}.",
        )
        if self.all_round:
            require(self.wiring_per_kernel, "all_round needs wiring_per_kernel: each kernel begins with its own cells.")
            require(
                self.kernels >= all_round.KERNELS,
                f"all_round needs {all_round.KERNELS} kernels or more, got {self.kernels}.",
            )
            schemes = self.perceive.connections
            require(
                schemes[0] == "first_kernel" and len(schemes) > 1,
                "all_round needs first_kernel and a further layer as the connections of perception, "
                f"got {list(schemes)}.",
            )

    @property
    def gates(self) -> int:
        return self.kernels * self.perceive.gates + self.update.gates

    @property
    def instances(self) -> int:
        """Gate evaluations for one cell and step: a perception gate counts once per channel."""
        return self.channels * self.kernels * self.perceive.gates + self.update.gates


TARGETS = ("checkerboard", "picture", "rule")
STARTS = ("random", "boards", "seed", "zeros", "picture")
MAX_BOARD_CELLS = 16
"""`boards` draws from all boards of so many cells at most."""


@dataclass(frozen=True)
class TaskConfig:
    """What the automaton should do: start state, grid, what happens on the way, and the target after T steps."""

    target: str = field(
        metadata=told(
            "checkerboard: ((col//2) + (row//2)) % 2 in channel 0; picture: the one below; rule: one generation of the "
            "rule below from the start, in channel 0",
            one_of(TARGETS),
        )
    )
    height: int = field(metadata=told("Rows of the grid, H", at_least(MIN_SIDE)))
    width: int = field(metadata=told("Columns of the grid, W", at_least(MIN_SIDE)))
    steps: int = field(metadata=told("CA steps, T", at_least(1)))
    start: str = field(
        default="random",
        metadata=told(
            "random: fair bits in every channel, fresh each epoch; boards: drawn from all boards of the grid's size, "
            "in channel 0; seed: the cell at (H//2, W//2) is 1 in every channel; zeros; picture: start_picture below",
            one_of(STARTS),
        ),
    )
    loss_channels: int = field(
        default=1, metadata=told("The first so many channels should show the target", at_least(1))
    )
    picture: tuple[str, ...] = field(
        default=(),
        metadata=told(
            "The target picture, H rows of W characters: . is 0 in all channels, 1 red (channel 0), 2 green "
            "(channel 1), 4 blue (channel 2), and so on as sums: 3 yellow, 5 magenta, 6 cyan, 7 white"
        ),
    )
    """Rows of text, one character a cell, as in `difflogic.raster`."""
    start_picture: tuple[str, ...] = field(
        default=(), metadata=told("The picture to start from, in the first channels, written in the same way")
    )
    rule: str = field(
        default="",
        metadata=told(
            "B3/S23 (born with 3 neighbours, survives with 2 or 3), or a table of 512 entries in 128 hexadecimal digits"
        ),
    )
    """As `difflogic.rules.table` reads it."""
    loss_steps: tuple[int, ...] = field(
        default=(),
        metadata=told(
            "CA steps after which the loss is taken, ascending, the last one T; their sum counts; empty: T alone"
        ),
    )
    damage_side: int = field(
        default=0,
        metadata=told(
            "Damage: a square of so many cells a side is zeroed in all channels, at a corner drawn uniformly from the "
            "grid's cells for each sample and clipped at the border; 0: none",
            at_least(0),
        ),
    )
    damage_steps: tuple[int, ...] = field(
        default=(),
        metadata=told("CA steps before which the damage is done, ascending: 0 is the start itself, at most T-1"),
    )

    def __post_init__(self) -> None:
        check(self)
        for name, used in (("picture", self.target), ("start_picture", self.start), ("rule", self.target)):
            given, needed = bool(getattr(self, name)), used == name.removeprefix("start_")
            require(given or not needed, f"{name} is missing: {_user_of(name)} needs it.")
            require(needed or not given, f"{name} is given, but only {_user_of(name)} uses it.")
        self._check_pictures()
        self._check_rule()
        self._check_steps()

    def _check_pictures(self) -> None:
        for name, bits in (("picture", self.loss_channels), ("start_picture", raster.MAX_BITS)):
            rows = getattr(self, name)
            if not rows:
                continue
            try:
                height, width, _ = raster.decode(rows, bits).shape
            except DataError as error:
                raise ConfigError(f"{name}: {error}") from error
            require(
                (height, width) == (self.height, self.width),
                f"{name} has {height}x{width} cells, but the grid has {self.height}x{self.width}.",
            )

    def _check_rule(self) -> None:
        if self.target == "rule":
            rules.table(self.rule)
            require(
                self.loss_channels == 1, f"A rule speaks of channel 0 alone, but loss_channels is {self.loss_channels}."
            )
        if self.start == "boards":
            cells = self.height * self.width
            require(
                cells <= MAX_BOARD_CELLS,
                f'start "boards" draws from all boards of at most {MAX_BOARD_CELLS} cells, the grid has {cells}.',
            )

    def _check_steps(self) -> None:
        _require_ascending("loss_steps", self.loss_steps, 1, self.steps)
        require(
            not self.loss_steps or self.loss_steps[-1] == self.steps,
            f"The last of loss_steps must be steps, {self.steps}, got {list(self.loss_steps)}.",
        )
        _require_ascending("damage_steps", self.damage_steps, 0, self.steps - 1)
        require(
            bool(self.damage_side) == bool(self.damage_steps),
            f"Damage needs both damage_side and damage_steps, got {self.damage_side} and {list(self.damage_steps)}.",
        )

    @property
    def judged_steps(self) -> tuple[int, ...]:
        """CA steps after which the loss is taken."""
        return self.loss_steps or (self.steps,)

    @property
    def can_grow(self) -> bool:
        """Whether smaller grids can prepare it: a picture, say, is of one size, and events are of its own steps."""
        return self.start == "random" and self.target != "picture" and not self.loss_steps and not self.damage_steps


def _user_of(name: str) -> str:
    return {"picture": 'target "picture"', "rule": 'target "rule"', "start_picture": 'start "picture"'}[name]


def _require_ascending(name: str, numbers: tuple[int, ...], least: int, most: int, what: str = "CA steps") -> None:
    ascending = all(a < b for a, b in itertools.pairwise(numbers))
    require(
        ascending and all(least <= number <= most for number in numbers),
        f"{name} must be ascending {what} between {least} and {most}, got {list(numbers)}.",
    )


MOST_EPOCHS = 2**31
EPOCH = between(0, MOST_EPOCHS)
HARDENING_EPOCHS = 1 << 16
"""The share of hardened gates grows in fewer epochs than this."""


@dataclass(frozen=True)
class TrainConfig:
    """The optimiser and its budget. One epoch is one optimiser step."""

    epochs: int = field(metadata=told("Optimiser steps in all", at_least(1)))
    batch: int = field(metadata=told("Samples per epoch, B", at_least(1)))
    lr: float = field(default=0.05, metadata=told("Learning rate of AdamW", NOT_NEGATIVE))
    lr_end: float = field(
        default=1.0,
        metadata=told("Share of lr that is left at the end, to which it falls evenly; 1: it stays", UP_TO_ONE),
    )
    lr_from: int = field(default=0, metadata=told("Epochs until it begins to fall", EPOCH))
    lr_to: int = field(default=0, metadata=told("Epochs until it has fallen to that share", EPOCH))
    weight_decay: float = field(default=0.01, metadata=told("Decoupled weight decay of all logits", NOT_NEGATIVE))
    beta1: float = field(default=0.9, metadata=told("Decay of AdamW's first moment", BELOW_ONE))
    beta2: float = field(default=0.99, metadata=told("Decay of AdamW's second moment", BELOW_ONE))
    epsilon: float = field(default=1e-8, metadata=told("Added to the root of the second moment", NOT_NEGATIVE))
    clip: float = field(default=100.0, metadata=told("Each gradient entry is clipped to [-clip, clip]", NOT_NEGATIVE))
    initial_logit: float = field(
        default=10.0,
        metadata=told("Start logit of gate A, which passes its input on; every other starts at 0", NOT_NEGATIVE),
    )
    narrow_drop: float = field(
        default=0.0,
        metadata=told(
            "The start logit is lower by so much in layers of the update network that are narrower than its first",
            NOT_NEGATIVE,
        ),
    )
    logit_noise: float = field(
        default=0.0,
        metadata=told("Standard deviation of the normal noise that moves every start logit", NOT_NEGATIVE),
    )
    hardening: float = field(
        default=0.0,
        metadata=told(
            "Share of gates, drawn each epoch, that are evaluated as their most probable gate; gradients stay soft",
            UP_TO_ONE,
        ),
    )
    harden_from: int = field(default=0, metadata=told("Epochs until that share grows from 0", EPOCH))
    harden_to: int = field(default=0, metadata=told("Epochs until it is reached", EPOCH))
    growth_until: tuple[int, ...] = field(
        default=(),
        metadata=told(
            "Epochs until which the grid is smaller than the task's, ascending, one for each size; empty: it never is"
        ),
    )
    growth_sides: tuple[int, ...] = field(default=(), metadata=told("Rows and columns of each smaller grid"))
    growth_steps: tuple[int, ...] = field(default=(), metadata=told("CA steps on each smaller grid"))
    settle_from: int = field(
        default=0,
        metadata=told(
            "Epochs until the hard circuit is searched, gate by gate, in place of gradient steps; 0: it never is", EPOCH
        ),
    )
    """What an epoch of it does: `difflogic.settling`."""
    fire_rate: float = field(
        default=1.0,
        metadata=told("Below 1, a cell takes its new state with this probability in each step: asynchronous", SHARE),
    )
    eval_interval: int = field(default=50, metadata=told("Epochs between evaluations, each saved", at_least(1)))
    probes: int = field(
        default=32,
        metadata=told(
            "Fixed fresh grids on which hard accuracy is measured, which training never sees; the start boards is "
            "judged on all boards, and a start that is always the same, without damage, on itself, whatever this says",
            at_least(1),
        ),
    )
    pool: int = field(
        default=0,
        metadata=told(
            "Grids in the sample pool, 0: every epoch starts afresh; sample b of a batch is drawn from the pool's b-th "
            "part of pool / batch grids, a power of two, and its last state is written back there",
            at_least(0),
        ),
    )
    pool_reset: int = field(
        default=1,
        metadata=told(
            "So many samples of each batch, those with the largest loss, go back into the pool as fresh starts",
            at_least(0),
        ),
    )
    precision: str = field(
        default="float32",
        metadata=told(
            "How the backward pass reads the values of gates: float32, or f16-storage, rounded to 16 bits within the "
            "least and the largest of 16 cells, which takes 9/16 of the memory where they are kept; gradients change "
            "by less than 1/2000 of the largest, those of a single layer by more of its own only late in training",
            one_of(PRECISIONS),
        ),
    )

    def __post_init__(self) -> None:
        check(self)
        self._check_growth()
        self._check_pool()
        if self.hardening:
            require(
                0 < self.harden_to - self.harden_from < HARDENING_EPOCHS,
                f"harden_to must be 1 to {HARDENING_EPOCHS - 1} epochs after harden_from, {self.harden_from}, "
                f"got {self.harden_to}.",
            )
        require(
            self.lr_end == 1 or self.lr_from < self.lr_to,
            f"lr_to must be later than lr_from, {self.lr_from}, where lr_end is below 1, got {self.lr_to}.",
        )

    def _check_growth(self) -> None:
        _require_ascending("growth_until", self.growth_until, 1, MOST_EPOCHS, "epochs")
        require(
            len(self.growth_until) == len(self.growth_sides) == len(self.growth_steps),
            "growth_until, growth_sides and growth_steps need a number for each smaller grid, got "
            f"{len(self.growth_until)}, {len(self.growth_sides)} and {len(self.growth_steps)}.",
        )

    def _check_pool(self) -> None:
        if self.pool:
            part, rest = divmod(self.pool, self.batch)
            require(
                rest == 0 and part.bit_count() == 1,
                f"pool must be batch times a power of two, got {self.pool} for a batch of {self.batch}.",
            )
            require(
                self.pool_reset <= self.batch,
                f"pool_reset must be at most the batch, {self.batch}, got {self.pool_reset}.",
            )

    @property
    def half(self) -> bool:
        return self.precision == "f16-storage"

    @property
    def asynchronous(self) -> bool:
        return self.fire_rate < 1


Section = ModelConfig | TaskConfig | TrainConfig


@dataclass(frozen=True)
class Config:
    """One training job, whole: `model`, `task`, `train`, under a name and a seed."""

    name: str = field(metadata=told("What the run is called; its folder is runs/NAME-DATE-TIME", FILE_NAME))
    model: ModelConfig = field(metadata=told("The circuit's shape"))
    task: TaskConfig = field(metadata=told("What the automaton should do"))
    train: TrainConfig = field(metadata=told("The optimiser and its budget; one epoch is one optimiser step"))
    seed: int = field(
        default=23, metadata=told("Wiring, starts, fire masks and probes come from it", between(0, 2**32 - 1))
    )

    def __post_init__(self) -> None:
        check(self)
        require(
            self.task.loss_channels <= self.model.channels,
            f"loss_channels is {self.task.loss_channels}, but a cell has {self.model.channels} channels.",
        )
        require(
            self.task.start != "boards" or self.model.channels == 1,
            f'start "boards" fills one channel, but a cell has {self.model.channels}.',
        )
        require(
            not self.train.pool or self.task.target != "rule",
            "A rule is judged against fresh starts, but a pool keeps later states: set pool to 0, "
            f'or another target than "rule", got pool {self.train.pool}.',
        )
        if self.task.start_picture:
            try:
                raster.decode(self.task.start_picture, min(self.model.channels, raster.MAX_BITS))
            except DataError as error:
                raise ConfigError(f"start_picture: {error}") from error

        require(
            not self.train.settle_from or not (self.train.pool or self.task.damage_steps),
            "A search judges fresh starts that nothing damages: set settle_from to 0, or leave out pool and damage.",
        )
        self._check_growth()

    def _check_growth(self) -> None:
        """The smaller grids of `train` against the task."""
        task, train = self.task, self.train
        if not train.growth_until:
            return
        require(
            task.can_grow and not train.pool,
            "A grid grows only with a random start, and without picture, loss_steps, damage and pool.",
        )
        for name, numbers, least, most in (
            ("growth_sides", train.growth_sides, MIN_SIDE, min(task.height, task.width)),
            ("growth_steps", train.growth_steps, 1, task.steps),
        ):
            require(
                all(least <= number <= most for number in numbers),
                f"Each of {name} must be between {least} and {most}, the task's own, got {list(numbers)}.",
            )

    def with_(self, **sections: Any) -> Config:
        """A copy with fields replaced; a dict replaces fields inside a section: `train={"epochs": 9}`.

        Raises ConfigError as `from_dict` does.
        """
        data = self.to_dict()
        for name, value in sections.items():
            fields = plain(dataclasses.asdict(value)) if isinstance(value, Section) else value
            inside = isinstance(fields, dict) and isinstance(data.get(name), dict)
            data[name] = {**data[name], **fields} if inside else fields
        return Config.from_dict(data)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings, as TOML and JSON hold them."""
        data: dict[str, Any] = plain(dataclasses.asdict(self))
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Config:
        """The inverse of `to_dict`. Raises ConfigError for unknown, missing or ill-typed fields."""
        config: Config = build(cls, data)
        return config

    def to_toml(self) -> str:
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Config:
        """Raises ConfigError where the text is not TOML or not a configuration."""
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"The configuration is not valid TOML: {error}.") from error

    @classmethod
    def load(cls, path: Path) -> Config:
        """Read a TOML file. Raises ConfigError where it cannot be read."""
        try:
            return cls.from_toml(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"Cannot read the configuration {path}: {error.strerror or error}.") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"Cannot read the configuration {path}: it is not text in UTF-8.") from error
