"""What to train and how, as frozen dataclasses that read and write TOML.

Axis letters used everywhere: `B` batch, `H` rows, `W` columns, `C` channels (bits of a cell),
`K` perception kernels, `S` outputs of one perception kernel, `T` CA steps, `M` models (population).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from difflogic import wiring
from difflogic.errors import ConfigError

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


@dataclass(frozen=True)
class TaskConfig:
    """What the automaton should do: start state, grid, and the target after T steps."""

    target: str
    """`checkerboard`: `((col//2) + (row//2)) % 2` in channel 0."""
    height: int
    width: int
    steps: int
    start: str = "random"
    """`random`: fair bits in every channel, fresh each epoch."""
    loss_channels: int = 1

    def __post_init__(self) -> None:
        _require(self.target in ("checkerboard",), f"Unknown target {self.target!r}: expected checkerboard.")
        _require(self.start in ("random",), f"Unknown start {self.start!r}: expected random.")
        for name in ("steps", "loss_channels"):
            _require_whole(name, getattr(self, name))
        _require(
            all(type(side) is int and side >= MIN_SIDE for side in (self.height, self.width)),
            f"A grid needs at least {MIN_SIDE}x{MIN_SIDE} cells, got {self.height}x{self.width}.",
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
    """Fixed fresh grids on which hard accuracy is measured; training never sees them."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "eval_interval", "probes"):
            _require_whole(name, getattr(self, name))
        for name in ("lr", "weight_decay", "epsilon", "clip", "initial_logit"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value >= 0, f"{name} must be a finite number of at least 0, got {value}.")
        for name in ("beta1", "beta2"):
            _require(0 <= getattr(self, name) < 1, f"{name} must be in [0, 1), got {getattr(self, name)}.")
        _require(0 < self.fire_rate <= 1, f"fire_rate must be in (0, 1], got {self.fire_rate}.")

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
