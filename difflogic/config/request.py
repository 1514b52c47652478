"""A request for training has one form, whoever asks: the command line, a client, or the service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config.dataset import Dataset
    from difflogic.config.schema import Config

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Within:
    """A limit of a solution is in seconds, or in epochs of all attempts and models together.

    Where both are given, whichever is over first.
    """

    seconds: float | None = None
    epochs: int | None = None
    used: float = 0.0
    """Of the seconds, so many are over already."""

    @classmethod
    def parse(cls, text: str) -> Within:
        """`60s`, `5m`, `2h`, `2000 epochs`, or one of each as in `60s or 2000 epochs`. Raises UsageError."""
        one, both, other = text.partition(" or ")
        if both:
            first, second = cls.parse(one), cls.parse(other)
            if (first.epochs is None) != (second.epochs is None):
                return cls(first.seconds or second.seconds, first.epochs or second.epochs)
        found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*(s|m|min|h|epochs?)?\s*", text)
        if found is not None:
            number, unit = float(found[1]), found[2] or ""
            if unit.startswith("epoch") and number.is_integer() and number >= 1:
                return cls(epochs=int(number))
            if unit in _UNITS and number > 0:
                return cls(seconds=number * _UNITS[unit])
        raise UsageError(f"A limit is a time or a number of epochs, say 60s, 5m, 2h or 2000 epochs, got {text[:80]!r}.")

    def __str__(self) -> str:
        """The limit in the form that `parse` reads."""
        told = [] if self.epochs is None else [f"{self.epochs} epochs"]
        if self.seconds is not None:
            # 60s, 5m and 48h, but 90s: the largest unit of which there are several, and no part of one.
            sizes = ((size, unit) for unit, size in (("h", 3600.0), ("m", 60.0)) if not self.seconds % size)
            size, unit = next((each for each in sizes if self.seconds >= 2 * each[0]), (1.0, "s"))
            told.insert(0, f"{self.seconds / size:.15g}{unit}")
        return " or ".join(told)


@dataclass(frozen=True)
class TrainRequest:
    """A request says what to train, how, and until when; `config.customise.configure` makes its configuration.

        TrainRequest("lizard", target=Path("cat.png"), size=(24, 24), fields={"train": {"epochs": 1000}}, restarts=2)

    None stands for what the preset or configuration says.
    """

    preset: str | None = None
    config: Config | None = None
    """Instead of a preset: a whole configuration, whose grid keeps its size whatever the target."""

    target: Path | None = None
    """A picture file to grow."""
    rule: str | None = None
    """A rule to learn, as `core.rules` reads it: `B3/S23`, `B2/S34H`, `110`."""
    rule_table: Path | None = None
    """A file with a rule to learn, as `customise.load_rule` reads it."""
    data: Dataset | None = None
    """Samples to learn; without a preset or configuration, by a circuit that `presets.of_samples` makes for them."""
    start: str | None = None
    """What each sample starts from: one of STARTS but `picture`, or the name of a picture file."""
    colors: int | None = None
    """Colours that pictures are read in."""
    size: tuple[int, int] | None = None
    """Width and height that pictures are made to fit into."""
    threshold: float | None = None
    """A bit of a picture is 1 above this share of full light."""
    padding: int = 0
    """Cells that are off, on each side of the target."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration, nested as `Config.from_dict` takes them. They go before all else."""
    recipe: str | None = None
    """The name of a recipe of `config.recipes`."""

    engine: str | None = None
    """A selector of `devices.open`, say `gpu:1`."""
    population: int = 1
    """Models that are trained at once, with seeds counted up from the configuration's."""
    stop_when_solved: int | None = None
    """Training ends at the first evaluation that finds so many models solved; 0: never."""
    restarts: int | None = None
    """How often training may begin again with other wiring, where it stalls; 0: it is one run, no attempts; None: as
    the recipe says, which `train.run_request.resolved` finds out."""
    until_solved: bool = False
    """Whether it begins again, however often, until a circuit passes the success test: `difflogic.train.success`."""
    within: Within | None = None
    """Where that ends, solved or not."""
    init_from: Path | str | None = None
    """The run whose logits and wiring it starts from; of a request to a server, a job."""
    starts: Path | None = None
    """A file of start grids to train on beside the task's own: `config.kept_starts`."""
    decide: bool = False
    """Whether undecided gates of a model that is solved become what they most probably are."""

    def check_attempts(self) -> None:
        """Raises UsageError where what is said of attempts contradicts itself."""
        again = "--until-solved" if self.until_solved else "--restarts" if self.restarts else None
        if again is not None and self.init_from is not None:
            raise UsageError(
                f"{again} restarts with different wiring, but --init-from keeps the wiring of a run: drop one."
            )
        if again is not None and self.starts is not None:
            raise UsageError(f"--starts is for a single run, but {again} makes several attempts: drop one.")
        if self.until_solved and self.restarts is not None:
            raise UsageError("--until-solved restarts without a limit, and --restarts sets one: drop one.")
        if self.within is not None and not self.until_solved:
            raise UsageError("--within is a limit of --until-solved: give that too, or --epochs.")

    @property
    def solved_models(self) -> int:
        """Return how many solved models end it: 0 is never; attempts end with the first, unless more are asked for."""
        # A run without restarts goes on to its last epoch, in which undecided gates may still become decided.
        return self.stop_when_solved or int(self.until_solved or bool(self.restarts))
