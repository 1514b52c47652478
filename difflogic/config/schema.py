"""Configuration of automata and their training, as frozen dataclasses that read and write TOML.

Axis letters: `B` batch, `H` rows, `W` columns, `C` channels (bits of a cell), `K` perception kernels, `S` outputs of
one perception kernel, `T` CA steps, `M` models (population).
"""

from __future__ import annotations

from typing import Any

from difflogic.config.document import POLICY, Document
from difflogic.config.fields import build, field, plain, require, section, shown
from difflogic.config.limits import FILE_NAME, between
from difflogic.config.model import ModelConfig
from difflogic.config.task import MIN_SIDE, DataConfig, PluginConfig, TaskConfig
from difflogic.config.train import (
    GrowthConfig,
    HardeningConfig,
    InitialConfig,
    OptimizerConfig,
    PoolConfig,
    ScheduleConfig,
    SearchConfig,
    TrainConfig,
)
from difflogic.core import rules, text_picture, wiring
from difflogic.errors import ConfigError, DataError
from difflogic.system.words import counted

FORMAT = 1


@section
class Config(Document):
    """Configuration of one run: the circuit, its task and how it is trained, under a name and a seed.

    It is immutable; `with_` returns a changed copy. The page about configurations and the file that `difflogic init`
    writes explain every field.

        >>> config = difflogic.presets.checkerboard(small=True).with_(seed=7, train={"epochs": 9})
        >>> config.train.epochs
        9
        >>> difflogic.Config.from_toml(config.to_toml()) == config
        True

    Raises:
        ConfigError: A value is out of range, or two fields contradict each other.
    """

    name: str = field("Name of the run; its folder is runs/NAME-DATE-TIME", FILE_NAME)
    model: ModelConfig = field("The circuit's shape")
    task: TaskConfig = field("Task of the automaton")
    train: TrainConfig = field("The budget of training; one epoch is one optimiser step")
    optimizer: OptimizerConfig = field("The optimiser AdamW, and the clipping of gradients", default=OptimizerConfig())
    schedule: ScheduleConfig = field("Schedule of the learning rate", default=ScheduleConfig())
    initial: InitialConfig = field("The logits before the first epoch", default=InitialConfig())
    hardening: HardeningConfig = field("A growing share of hard gates in training", default=HardeningConfig())
    growth: GrowthConfig = field("Smaller grids that are trained on first, one per list entry", default=GrowthConfig())
    search: SearchConfig = field("A search over hard circuits at the end", default=SearchConfig())
    pool: PoolConfig = field("The sample pool: epochs start from the last states of earlier ones", default=PoolConfig())
    data: DataConfig = field('The samples of the target "data"', default=DataConfig())
    plugin: PluginConfig = field("The task in Python that makes the samples, if any", default=PluginConfig())
    seed: int = field(
        "Seed of wiring, initial states, fire masks and evaluation grids", between(0, 2**32 - 1), default=23
    )
    unit = "epoch"
    """Unit of progress, as in PolicyConfig."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_channels()
        require(
            self.task.start != "boards" or self.model.channels == 1,
            f'start "boards" fills one channel, but a cell has {self.model.channels}.',
        )
        require(
            self.task.height > 1 or self.model.neighbourhood == "line",
            f'A grid of one row needs model.neighbourhood "line", got "{self.model.neighbourhood}".',
        )
        self._check_rule()
        # The number of bits that a character may hold depends on the model's channels.
        if self.task.start_picture:
            try:
                text_picture.decode(self.task.start_picture, min(self.model.channels, text_picture.MAX_BITS))
            except DataError as error:
                raise ConfigError(f"start_picture: {error}") from error
        require(
            not self.search.begin or self.can_be_searched,
            "A search requires fresh initial states, without damage, and no fixed channels: set search.begin to 0, or "
            "omit [pool], damage, faults and model.held.",
        )
        self._check_pool()
        self._check_growth()
        self._check_data()

    def _check_channels(self) -> None:
        model, needed = self.model, max(self.task.loss_channels, self.data.channels)
        message = f"loss_channels is {needed}, but a cell has {counted(model.channels, 'channel')}."
        if self.task.target == "data":
            inputs = needed * (1 + model.perceive.widths[-1] * model.kernels)
            message = (
                f"The samples have {counted(needed, 'channel')}, but a cell has {model.channels}: omit the "
                f"preset, then a circuit is made for them; or set model.channels to {needed}, and model.update.widths "
                f"so that it begins with {inputs} and ends with {needed}."
            )
        require(needed <= model.channels, message)

    @property
    def epochs(self) -> int:
        """Number of epochs of a run."""
        return self.train.epochs

    def with_epochs(self, epochs: int) -> Config:
        return self.with_(train={"epochs": epochs})

    @property
    def can_be_searched(self) -> bool:
        """True if a search may follow training."""
        return not (self.pool.size or self.task.disturbed or self.model.held)

    def _check_rule(self) -> None:
        if self.task.target != "rule":
            return
        cells = set(wiring.NEIGHBOURHOODS[self.model.neighbourhood])
        beyond = set(rules.read_cells(rules.table(self.task.rule))) - cells
        require(
            not beyond,
            f"The rule {self.task.rule:.20} depends on cells that the neighbourhood {self.model.neighbourhood} does "
            f"not have: set model.neighbourhood to {rules.parse(self.task.rule).neighbourhood or 'moore'}.",
        )

    def _check_pool(self) -> None:
        size, reset, batch = self.pool.size, self.pool.reset, self.train.batch
        if not size:
            return
        require(
            self.task.target != "rule",
            "A rule needs fresh initial states, but a pool stores later states: set pool.size to 0, "
            f'or another target than "rule", got pool.size {size}.',
        )
        # A power of two, so that low bits of one random word are an index in a part.
        part, rest = divmod(size, batch)
        require(
            rest == 0 and part.bit_count() == 1,
            f"pool.size must be batch times a power of two, got {size} for a batch of {batch}.",
        )
        require(reset <= batch, f"pool.reset must be at most the batch, {batch}, got {reset}.")
        require(
            not self.pool.starts or part > 1,
            f"The file of pool.starts fills half of the pool: pool.size must be at least {2 * batch}, got {size}.",
        )

    def _check_growth(self) -> None:
        task, growth = self.task, self.growth
        if not growth.until:
            return
        require(
            task.can_grow and not self.pool.size,
            "[growth] needs a board or rule from random states, no loss_steps, damage, faults or pool: omit [growth].",
        )
        for name, numbers, least, most in (
            ("growth.sides", growth.sides, MIN_SIDE, task.shortest_side),
            ("growth.steps", growth.steps, 1, task.steps),
        ):
            require(
                all(least <= number <= most for number in numbers),
                f"Each of {name} must be at least {least} and at most that of the task, {most}, got {list(numbers)}.",
            )

    def _check_data(self) -> None:
        task, data = self.task, self.data
        require(
            (task.target == "data") == bool(data.sha256 or self.plugin.name),
            'Samples and the target "data" go together: give them with `data`, which sets data.sha256.',
        )
        if not data.sha256:
            return
        require(data.channels >= 1, f"data.channels must be at least 1, got {data.channels}.")
        require(
            data.targets in (1, len(task.judged_steps)),
            f"data.targets must be 1 or the number of compared steps, {len(task.judged_steps)}, got {data.targets}.",
        )
        require(
            not (self.pool.size or self.search.begin),
            "Samples support neither a pool nor a search: set pool.size and search.begin to 0.",
        )
        require(
            data.samples > 1 or not data.held_out,
            f"At least 2 samples are needed to hold some out, got {data.samples}: add some, or set data.held_out to 0.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and strings for TOML and JSON, with `format` first."""
        return {"format": FORMAT, **plain(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Config:
        """Make a configuration from the result of `to_dict`. Raises ConfigError for wrong fields or another format."""
        if isinstance(data, dict):  # anything else is refused by `build`
            if data.get("kind") == POLICY:
                raise ConfigError("This is the configuration of an agent: use `difflogic train-policy`.")
            data = dict(data)
            # A hand-written file may lack the format.
            written = data.pop("format", FORMAT)
            if type(written) is not int or written != FORMAT:
                raise ConfigError(
                    f"The configuration has format {shown(written)}, but this difflogic reads format {FORMAT}: use "
                    "the version that wrote it."
                )
        config: Config = build(cls, data)
        return config
