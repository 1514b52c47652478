"""What to train and how, as frozen dataclasses that read and write TOML.

Axis letters used everywhere: `B` batch, `H` rows, `W` columns, `C` channels (bits of a cell),
`K` perception kernels, `S` outputs of one perception kernel, `T` CA steps, `M` models (population).
"""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from difflogic.config.fields import FILE_NAME, between, build, check, plain, require, spec
from difflogic.config.model import ModelConfig
from difflogic.config.task import MIN_SIDE, TaskConfig
from difflogic.config.train import TrainConfig
from difflogic.core import text_picture
from difflogic.errors import ConfigError, DataError
from difflogic.system.brief import brief

Section = ModelConfig | TaskConfig | TrainConfig


@dataclass(frozen=True)
class Config:
    """One training job, whole: `model`, `task`, `train`, under a name and a seed."""

    name: str = field(metadata=spec("What the run is called; its folder is runs/NAME-DATE-TIME", FILE_NAME))
    model: ModelConfig = field(metadata=spec("The circuit's shape"))
    task: TaskConfig = field(metadata=spec("What the automaton should do"))
    train: TrainConfig = field(metadata=spec("The optimiser and its budget; one epoch is one optimiser step"))
    seed: int = field(
        default=23, metadata=spec("Wiring, starts, fire masks and probes come from it", between(0, 2**32 - 1))
    )

    __repr__ = brief

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
                text_picture.decode(self.task.start_picture, min(self.model.channels, text_picture.MAX_BITS))
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
        except RecursionError as error:
            raise ConfigError("The configuration has tables or lists inside each other without end.") from error

    @classmethod
    def load(cls, path: Path) -> Config:
        """Read a TOML file. Raises ConfigError where it cannot be read."""
        try:
            return cls.from_toml(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise ConfigError(f"Cannot read the configuration {path}: {error.strerror or error}.") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"Cannot read the configuration {path}: it is not text in UTF-8.") from error
