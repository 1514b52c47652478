"""What to train and how, as frozen dataclasses that read and write TOML.

Axis letters used everywhere: `B` batch, `H` rows, `W` columns, `C` channels (bits of a cell),
`K` perception kernels, `S` outputs of one perception kernel, `T` CA steps, `M` models (population).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from difflogic import raster, rules, wiring
from difflogic.errors import ConfigError, DataError

MIN_SIDE = 3
"""A grid is at least 3x3: below that a neighbourhood would meet the same cell twice."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _require_whole(name: str, value: int, least: int = 1) -> None:
    _require(type(value) is int and value >= least, f"{name} must be a whole number of at least {least}, got {value}.")


@dataclass(frozen=True)
class NetworkConfig:
    """A stack of gate layers: `widths[0]` inputs, then one layer per further width."""

    widths: tuple[int, ...]
    connections: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(len(self.widths) >= 2, f"widths needs inputs and at least one layer, got {list(self.widths)}.")
        for width in self.widths:
            _require_whole("each of widths", width)
        _require(
            len(self.connections) == len(self.widths) - 1,
            f"connections needs one scheme per layer: {len(self.widths) - 1} expected, {len(self.connections)} given.",
        )
        for scheme in self.connections:
            _require(
                scheme in wiring.SCHEMES,
                f"Unknown connections {scheme!r}: expected one of {', '.join(wiring.SCHEMES)}.",
            )

    @property
    def gates(self) -> int:
        return sum(self.widths[1:])


@dataclass(frozen=True)
class ModelConfig:
    """The circuit's shape: C channels, K perception kernels, perception and update networks."""

    channels: int
    kernels: int
    perceive: NetworkConfig
    update: NetworkConfig
    periodic: bool = False
    wiring_per_kernel: bool = False
    """False: all perception kernels share one wiring, as in the paper. True: each has its own."""

    def __post_init__(self) -> None:
        _require_whole("channels", self.channels)
        _require_whole("kernels", self.kernels)
        first, last = self.perceive.widths[0], self.perceive.widths[-1]
        _require(first == wiring.PATCH, f"perception reads a 3x3 patch: widths must begin with 9, got {first}.")
        inputs = self.channels + self.channels * last * self.kernels
        _require(
            self.update.widths[0] == inputs,
            f"the update network reads the cell and every perception output: its widths must begin with {inputs}, "
            f"got {self.update.widths[0]}.",
        )
        _require(
            self.update.widths[-1] == self.channels,
            f"the update network's output is the new cell: its widths must end with {self.channels}, "
            f"got {self.update.widths[-1]}.",
        )

    @property
    def gates(self) -> int:
        return self.kernels * self.perceive.gates + self.update.gates


TARGETS = ("checkerboard", "picture", "rule")
STARTS = ("random", "boards", "seed", "zeros", "picture")
MAX_BOARD_CELLS = 16
"""`boards` draws from all boards of so many cells at most."""


@dataclass(frozen=True)
class TaskConfig:
    """What the automaton should do: start state, grid, what happens on the way, and the target after T steps."""

    target: str
    """`checkerboard`: `((col//2) + (row//2)) % 2` in channel 0. `picture`: `picture`. `rule`: one generation
    of `rule` from the start, in channel 0."""
    height: int
    width: int
    steps: int
    start: str = "random"
    """`random`: fair bits in every channel, fresh each epoch. `boards`: drawn with replacement from all boards of
    the grid's size, in channel 0. `seed`: the cell at (H//2, W//2) is 1 in every channel. `zeros`.
    `picture`: `start_picture`, its bits in the first channels."""
    loss_channels: int = 1
    picture: tuple[str, ...] = ()
    """Rows of text, one character a cell, as in `difflogic.raster`."""
    start_picture: tuple[str, ...] = ()
    rule: str = ""
    """As `difflogic.rules.table` reads it: `B3/S23`, or the 512 entries as 128 hexadecimal digits."""
    loss_steps: tuple[int, ...] = ()
    """CA steps after which the loss is taken, ascending, the last one T; their sum counts. Empty: T alone."""
    damage_side: int = 0
    """A square of so many cells a side is zeroed in all channels, at a corner drawn uniformly from the grid's
    cells for each sample and clipped at the border (0: no damage)."""
    damage_steps: tuple[int, ...] = ()
    """CA steps before which the damage is done: 0 is the start itself, at most T-1."""

    def __post_init__(self) -> None:
        _require_one_of("target", self.target, TARGETS)
        _require_one_of("start", self.start, STARTS)
        for name in ("steps", "loss_channels"):
            _require_whole(name, getattr(self, name))
        _require(
            all(type(side) is int and side >= MIN_SIDE for side in (self.height, self.width)),
            f"A grid needs at least {MIN_SIDE}x{MIN_SIDE} cells, got {self.height}x{self.width}.",
        )
        for name, used in (("picture", self.target), ("start_picture", self.start), ("rule", self.target)):
            given, needed = bool(getattr(self, name)), used == name.removeprefix("start_")
            _require(given or not needed, f"{name} is missing: {_user_of(name)} needs it.")
            _require(needed or not given, f"{name} is given, but only {_user_of(name)} uses it.")
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
            _require(
                (height, width) == (self.height, self.width),
                f"{name} has {height}x{width} cells, but the grid has {self.height}x{self.width}.",
            )

    def _check_rule(self) -> None:
        if self.target == "rule":
            rules.table(self.rule)
            _require(
                self.loss_channels == 1, f"A rule speaks of channel 0 alone, but loss_channels is {self.loss_channels}."
            )
        if self.start == "boards":
            cells = self.height * self.width
            _require(
                cells <= MAX_BOARD_CELLS,
                f'start "boards" draws from all boards of at most {MAX_BOARD_CELLS} cells, the grid has {cells}.',
            )

    def _check_steps(self) -> None:
        _require_ascending("loss_steps", self.loss_steps, 1, self.steps)
        _require(
            not self.loss_steps or self.loss_steps[-1] == self.steps,
            f"The last of loss_steps must be steps, {self.steps}, got {list(self.loss_steps)}.",
        )
        _require_ascending("damage_steps", self.damage_steps, 0, self.steps - 1)
        _require_whole("damage_side", self.damage_side, least=0)
        _require(
            bool(self.damage_side) == bool(self.damage_steps),
            f"Damage needs both damage_side and damage_steps, got {self.damage_side} and {list(self.damage_steps)}.",
        )

    @property
    def judged_steps(self) -> tuple[int, ...]:
        """CA steps after which the loss is taken."""
        return self.loss_steps or (self.steps,)


def _user_of(name: str) -> str:
    return {"picture": 'target "picture"', "rule": 'target "rule"', "start_picture": 'start "picture"'}[name]


def _require_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    _require(value in known, f"Unknown {name} {value!r}: expected one of {', '.join(known)}.")


def _require_ascending(name: str, steps: tuple[int, ...], least: int, most: int) -> None:
    ascending = all(a < b for a, b in itertools.pairwise(steps))
    _require(
        ascending and all(least <= step <= most for step in steps),
        f"{name} must be ascending CA steps between {least} and {most}, got {list(steps)}.",
    )


@dataclass(frozen=True)
class TrainConfig:
    """The optimiser and its budget. One epoch is one optimiser step."""

    epochs: int
    batch: int
    lr: float = 0.05
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8
    clip: float = 100.0
    """Each gradient entry is clipped to `[-clip, clip]`."""
    initial_logit: float = 10.0
    """Start logit of gate A; every other starts at 0."""
    fire_rate: float = 1.0
    """Below 1, a cell takes its new state with this probability in each step (asynchronous)."""
    eval_interval: int = 50
    probes: int = 32
    """Fixed fresh grids on which hard accuracy is measured; training never sees them. The start `boards` is judged
    on all boards, and a start that is always the same on itself, whatever this says."""
    pool: int = 0
    """Grids that the sample pool holds (0: every epoch starts afresh). Sample `b` of a batch is drawn from the
    pool's `b`-th part of `pool / batch` grids, a power of two, and its last state is written back there."""
    pool_reset: int = 1
    """So many samples of each batch, those with the largest loss, go back into the pool as fresh starts."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "eval_interval", "probes"):
            _require_whole(name, getattr(self, name))
        for name in ("lr", "weight_decay", "epsilon", "clip", "initial_logit"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value >= 0, f"{name} must be a finite number of at least 0, got {value}.")
        for name in ("beta1", "beta2"):
            _require(0 <= getattr(self, name) < 1, f"{name} must be in [0, 1), got {getattr(self, name)}.")
        _require(0 < self.fire_rate <= 1, f"fire_rate must be in (0, 1], got {self.fire_rate}.")
        self._check_pool()

    def _check_pool(self) -> None:
        for name in ("pool", "pool_reset"):
            _require_whole(name, getattr(self, name), least=0)
        if self.pool:
            part, rest = divmod(self.pool, self.batch)
            _require(
                rest == 0 and part.bit_count() == 1,
                f"pool must be batch times a power of two, got {self.pool} for a batch of {self.batch}.",
            )
            _require(
                self.pool_reset <= self.batch,
                f"pool_reset must be at most the batch, {self.batch}, got {self.pool_reset}.",
            )

    @property
    def asynchronous(self) -> bool:
        return self.fire_rate < 1


Section = ModelConfig | TaskConfig | TrainConfig


@dataclass(frozen=True)
class Config:
    """One training job, whole: `model`, `task`, `train`, under a name and a seed."""

    name: str
    model: ModelConfig
    task: TaskConfig
    train: TrainConfig
    seed: int = field(default=23)

    def __post_init__(self) -> None:
        in_range = type(self.seed) is int and 0 <= self.seed < 2**32
        _require(in_range, f"seed must be a whole number between 0 and {2**32 - 1}, got {self.seed}.")
        _require(
            self.task.loss_channels <= self.model.channels,
            f"loss_channels is {self.task.loss_channels}, but a cell has {self.model.channels} channels.",
        )
        _require(
            self.task.start != "boards" or self.model.channels == 1,
            f'start "boards" fills one channel, but a cell has {self.model.channels}.',
        )

    def with_(self, **sections: Any) -> Config:
        """A copy with fields replaced; a dict replaces fields inside a section: `train={"epochs": 9}`.

        Raises ConfigError as `from_dict` does.
        """
        data = self.to_dict()
        for name, value in sections.items():
            fields = _plain(dataclasses.asdict(value)) if isinstance(value, Section) else value
            inside = isinstance(fields, dict) and isinstance(data.get(name), dict)
            data[name] = {**data[name], **fields} if inside else fields
        return Config.from_dict(data)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings, as TOML and JSON hold them."""
        data: dict[str, Any] = _plain(dataclasses.asdict(self))
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Config:
        """The inverse of `to_dict`. Raises ConfigError for unknown, missing or ill-typed fields."""
        config: Config = _build(cls, data, "")
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
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"Cannot read the configuration {path}: {error}.") from error


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


def _build(cls: type, data: Any, where: str) -> Any:
    """A dataclass from a dict, each field checked against its annotation."""
    _require(isinstance(data, dict), f"{where.removesuffix('.') or 'The configuration'} must be a table, got {data!r}.")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(data) - set(hints))
    _require(not unknown, f"Unknown field {where}{', '.join(unknown)}: expected {', '.join(hints)}.")
    values = {name: _convert(hints[name], value, f"{where}{name}") for name, value in data.items()}
    required = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
    missing = sorted(required - set(values))
    _require(not missing, f"Missing field {where}{', '.join(missing)}.")
    return cls(**values)


def _convert(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _build(typing.cast(type, hint), value, f"{where}.")
    if isinstance(hint, types.GenericAlias):  # tuple[item, ...]
        _require(isinstance(value, list | tuple), f"{where} must be a list, got {value!r}.")
        return tuple(_convert(hint.__args__[0], item, where) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # beyond every float: refused below
            return float(value)
    _require(type(value) is hint, f"{where} must be of type {hint.__name__}, got {value!r}.")
    return value
