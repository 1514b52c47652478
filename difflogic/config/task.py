"""`[task]`, `[data]` and `[plugin]`: task, grid, and initial states or samples."""

import re

from difflogic.config.choices import STARTS
from difflogic.config.fields import Section, Table, field, require, require_ascending, section
from difflogic.config.limits import BELOW_ONE, COUNT, UP_TO_ONE, WHOLE, WIDTH, Limits, between, one_of
from difflogic.core import rules, text_picture
from difflogic.errors import ConfigError, DataError

MIN_SIDE = 3
"""Minimum side of a grid, since neighbourhoods on smaller grids contain a cell twice; a line has one row."""
MAX_SIDE = 2**16
SIDE = between(MIN_SIDE, MAX_SIDE)


def is_large_enough(height: int, width: int, neighbourhood: str) -> bool:
    """Return whether a grid with this neighbourhood may have this height and width."""
    return width >= MIN_SIDE and (height >= MIN_SIDE or (height == 1 and neighbourhood == "line"))


ROWS = Limits(f"{SIDE.words}, or 1 on a line", lambda value: value is not True and (value == 1 or SIDE.holds(value)))
TARGETS = ("checkerboard", "picture", "rule", "data")
STUCK_AT = ("0", "1", "either")
MAX_BOARD_CELLS = 16
"""Maximum number of cells of a grid whose initial states are all boards."""
_CELL = re.compile(r"(\d{1,5}),(\d{1,5})=[01]", re.ASCII)
"""Pattern of a stuck cell: row, column and value."""


@section
class TaskConfig(Section):
    """`[task]`: initial state, grid, damage and faults, and target after T steps."""

    target: str = field(
        "checkerboard: ((col//2) + (row//2)) % 2 in channel 0; picture: the image in picture; rule: one step of "
        "rule from the initial state, in channel 0; data: the target of each sample, see [data]",
        one_of(TARGETS),
    )
    height: int = field("Rows of the grid, H", ROWS)
    width: int = field("Columns of the grid, W", SIDE)
    steps: int = field("CA steps, T", COUNT)
    start: str = field(
        "random: fair bits in every channel, fresh each epoch; boards: any board of 0 and 1, in channel 0; "
        "seed: the cell at (H//2, W//2) is 1 in every channel; zeros: 0 in every channel; picture: start_picture; with "
        "target data, random or zeros only fills the channels that the samples leave free",
        one_of(STARTS),
        default="random",
    )
    loss_channels: int = field("Number of channels, from channel 0, that are compared to the target", WIDTH, default=1)
    picture: tuple[str, ...] = field(
        "The target image, H rows of W characters: . is 0 in all channels, 1 red (channel 0), 2 green "
        "(channel 1), 4 blue (channel 2), and so on as sums: 3 yellow, 5 magenta, 6 cyan, 7 white",
        default=(),
    )
    start_picture: tuple[str, ...] = field("Initial image in the first channels, in the form of picture", default=())
    rule: str = field(
        "B3/S23 (born with 3 neighbours, survives with 2 or 3), B2/S34H on hexagons, B13/S01V with four "
        "neighbours, 110 (Wolfram's number) on a line, or a table of 512 entries in 128 hexadecimal digits, optionally "
        "with its grid, as B3/S23:P30,20; for data, the rule that made the samples, of any number of states",
        default="",
    )
    loss_steps: tuple[int, ...] = field(
        "Ascending CA steps with a loss, of which the last is task.steps; empty: only that one", default=()
    )
    damage_side: int = field(
        "Damage: a square of this side is zeroed in all channels, clipped at the border, its corner a random cell for "
        "each sample; 0: none",
        between(0, MAX_SIDE),
        default=0,
    )
    damage_steps: tuple[int, ...] = field("CA steps before which damage is done, ascending; 0: the first", default=())
    flip: float = field("Probability that a bit of a cell flips before a CA step, per sample", UP_TO_ONE, default=0.0)
    stuck_cells: float = field(
        "Share of cells, random for each sample, that are stuck in all channels before every CA step",
        UP_TO_ONE,
        default=0.0,
    )
    stuck_gates: float = field(
        "Share of gates, random for each epoch, that are stuck in training; evaluations use all gates",
        UP_TO_ONE,
        default=0.0,
    )
    stuck_at: str = field(
        "Value of stuck cells and gates: 0, 1, or either, at random", one_of(STUCK_AT), default="either"
    )
    stays: bool = field(
        "Whether each cell of a circuit gets a clock and a latch, so that the image stays and regrows after damage; "
        "requires start zeros, and at least as many steps as the longer side has cells",
        default=False,
    )
    stuck_list: tuple[str, ...] = field('Cells that are always stuck, "ROW,COLUMN=VALUE", counted from 0', default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        # An unused value is rejected, not silently ignored.
        for name, used in (("picture", self.target), ("start_picture", self.start), ("rule", self.target)):
            is_given, is_needed = bool(getattr(self, name)), used == name.removeprefix("start_")
            require(is_given or not is_needed, f"{name} is missing: {_user_of(name)} needs it.")
            is_source = (name, used) == ("rule", "data")
            require(is_needed or is_source or not is_given, f"{name} is given, but only {_user_of(name)} uses it.")
        self._check_pictures()
        self._check_rule()
        self._check_steps()
        is_plain = self.target == "picture" and self.start == "zeros" and not self.loss_steps and not self.disturbed
        require(
            not self.stays or (is_plain and self.steps >= max(self.height, self.width)),
            "stays requires an image from start zeros, no loss_steps, damage or faults, and at least as many steps as "
            f"the longer side, {max(self.height, self.width)}, got {self.steps}: set stays = false, or change these.",
        )
        for cell in self.stuck_list:
            match = _CELL.fullmatch(cell)
            require(
                match is not None and int(match[1]) < self.height and int(match[2]) < self.width,
                f'stuck_list takes cells of the {self.width}x{self.height} grid as "ROW,COLUMN=VALUE", got {cell!r}.',
            )

    def _check_pictures(self) -> None:
        for name, bits in (("picture", self.loss_channels), ("start_picture", text_picture.MAX_BITS)):
            rows = getattr(self, name)
            if not rows:
                continue
            try:
                height, width, _ = text_picture.decode(rows, bits).shape
            except DataError as error:
                raise ConfigError(f"{name}: {error}") from error
            require(
                (height, width) == (self.height, self.width),
                f"{name} has {width}x{height} cells, but the grid has {self.width}x{self.height}.",
            )
        require(
            self.target != "data" or self.start in ("random", "zeros"),
            f"start only fills the channels that samples leave free: it must be random or zeros, got {self.start!r}.",
        )

    def _check_rule(self) -> None:
        if self.target == "rule":
            rules.table(self.rule)
            channels = self.loss_channels
            require(channels == 1, f"A rule only sets channel 0: loss_channels must be 1, got {channels}.")
        if self.start == "boards":
            # A board's number has a bit for each cell: 16 cells are 65536 boards.
            cells = self.height * self.width
            require(
                cells <= MAX_BOARD_CELLS,
                f'start "boards" supports at most {MAX_BOARD_CELLS} cells, got {cells}: use a smaller grid.',
            )

    def _check_steps(self) -> None:
        # The lists must ascend, since an engine runs the steps once and pauses at each listed step.
        require_ascending("loss_steps", self.loss_steps, 1, self.steps)
        require(
            not self.loss_steps or self.loss_steps[-1] == self.steps,
            f"The last of loss_steps must be steps, {self.steps}, got {list(self.loss_steps)}.",
        )
        require_ascending("damage_steps", self.damage_steps, 0, self.steps - 1)
        require(
            bool(self.damage_side) == bool(self.damage_steps),
            f"Damage needs both damage_side and damage_steps, got {self.damage_side} and {list(self.damage_steps)}.",
        )

    @property
    def judged_steps(self) -> tuple[int, ...]:
        """CA steps after which the loss compares the state with the target."""
        return self.loss_steps or (self.steps,)

    @property
    def shortest_side(self) -> int:
        """Length of the shorter side of the grid; for a single row its width."""
        return self.width if self.height == 1 else min(self.height, self.width)

    def on_side(self, side: int) -> tuple[int, int]:
        """Return height and width of a grid with this side; a line keeps its single row."""
        return (1 if self.height == 1 else side), side

    @property
    def is_fixed(self) -> bool:
        """True if the target is the same for all initial states."""
        return self.target not in ("rule", "data")

    @property
    def stuck_listed(self) -> list[tuple[int, int, int]]:
        """Row, column and value of each cell in `stuck_list`."""
        parts = (cell.replace("=", ",").split(",") for cell in self.stuck_list)
        return [(int(row), int(column), int(value)) for row, column, value in parts]

    @property
    def faulty(self) -> bool:
        """True if faults change states between steps: bit flips, or stuck cells."""
        return bool(self.flip or self.stuck_cells or self.stuck_list)

    @property
    def disturbed(self) -> bool:
        """True if damage or faults change states between steps."""
        return bool(self.damage_steps) or self.faulty

    @property
    def can_grow(self) -> bool:
        """True if training may begin on smaller grids: a board or rule, random states, undisturbed, no `loss_steps`."""
        is_plain = not self.loss_steps and not self.disturbed
        return self.start == "random" and self.target in ("checkerboard", "rule") and is_plain


@section
class DataConfig(Section, path="data."):
    """`[data]`: the samples of the target `data`, which a run stores in data.npz."""

    sha256: str = field("SHA-256 of the samples, set with their sizes by `data`; empty: none", default="")
    samples: int = field("Number of samples, N", WHOLE, default=0)
    channels: int = field("Number of channels, from channel 0, whose initial values a sample sets", WHOLE, default=0)
    targets: int = field("Targets per sample: 1 for all of task.loss_steps, or one for each", COUNT, default=1)
    held_out: float = field("Share of samples only for evaluation; 0: all also for training", BELOW_ONE, default=0.2)


@section
class PluginConfig(Section, path="plugin."):
    """`[plugin]`: the task in Python that makes the samples, with its version and settings."""

    name: str = field("Name of the task in Python, DISTRIBUTION:NAME of its entry point; empty: none", default="")
    version: str = field("Version of the task in Python", default="")
    settings: Table = field("Settings of the task in Python; omitted ones have the task's defaults", default=Table())


def _user_of(name: str) -> str:
    return {"picture": 'target "picture"', "rule": 'target "rule"', "start_picture": 'start "picture"'}[name]
