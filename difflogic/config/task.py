"""`[task]`, `[data]` and `[plugin]`: what the automaton should do, on which grid, from which start or samples."""

from __future__ import annotations

import re

from difflogic.config.choices import STARTS
from difflogic.config.fields import Section, Table, field, require, require_ascending, section
from difflogic.config.limits import BELOW_ONE, COUNT, UP_TO_ONE, WHOLE, WIDTH, Limits, between, one_of
from difflogic.core import rules, text_picture
from difflogic.errors import ConfigError, DataError

MIN_SIDE = 3
"""A grid is at least 3x3: below that a neighbourhood would meet the same cell twice. On a line there is one row."""
MAX_SIDE = 2**16
"""Cells of a grid a side, at most."""
SIDE = between(MIN_SIDE, MAX_SIDE)


def is_large_enough(height: int, width: int, neighbourhood: str) -> bool:
    """Return whether a grid of this neighbourhood may have so many rows and columns."""
    return width >= MIN_SIDE and (height >= MIN_SIDE or (height == 1 and neighbourhood == "line"))


ROWS = Limits(f"{SIDE.words}, or 1 on a line", lambda value: value is not True and (value == 1 or SIDE.holds(value)))
TARGETS = ("checkerboard", "picture", "rule", "data")
STUCK_AT = ("0", "1", "either")
MAX_BOARD_CELLS = 16
"""`boards` draws from all boards of so many cells at most."""
_CELL = re.compile(r"(\d{1,5}),(\d{1,5})=[01]", re.ASCII)
"""A stuck cell: its row, its column and its value."""


@section
class TaskConfig(Section):
    """`[task]` says what the automaton should do: start state, grid, events on the way, and target after T steps."""

    target: str = field(
        "checkerboard: ((col//2) + (row//2)) % 2 in channel 0; picture: the one below; rule: one generation of the "
        "rule below from the start, in channel 0; data: that of each sample, see [data]",
        one_of(TARGETS),
    )
    height: int = field("Rows of the grid, H", ROWS)
    width: int = field("Columns of the grid, W", SIDE)
    steps: int = field("CA steps, T", COUNT)
    start: str = field(
        "random: fair bits in every channel, fresh each epoch; boards: drawn from all boards of the grid's size, "
        "in channel 0; seed: the cell at (H//2, W//2) is 1 in every channel; zeros; picture: start_picture below; "
        "of data, random or zeros: the channels that are not the samples' own",
        one_of(STARTS),
        default="random",
    )
    loss_channels: int = field("The first so many channels should show the target", WIDTH, default=1)
    picture: tuple[str, ...] = field(
        "The target picture, H rows of W characters: . is 0 in all channels, 1 red (channel 0), 2 green "
        "(channel 1), 4 blue (channel 2), and so on as sums: 3 yellow, 5 magenta, 6 cyan, 7 white",
        default=(),
    )
    """Rows of text, one character a cell, as in `difflogic.core.text_picture`."""
    start_picture: tuple[str, ...] = field(
        "The picture to start from, in the first channels, written in the same way", default=()
    )
    rule: str = field(
        "B3/S23 (born with 3 neighbours, survives with 2 or 3), B2/S34H on hexagons, B13/S01V with four "
        "neighbours, 110 (Wolfram's number) on a line, or a table of 512 entries in 128 hexadecimal digits",
        default="",
    )
    """The rule, as `difflogic.core.rules.table` reads it."""
    loss_steps: tuple[int, ...] = field(
        "CA steps after which the loss is taken, ascending, the last one T; their sum counts; empty: T alone",
        default=(),
    )
    damage_side: int = field(
        "Damage: a square of so many cells a side is zeroed in all channels, at a corner drawn uniformly from the "
        "grid's cells for each sample and clipped at the border; 0: none",
        between(0, MAX_SIDE),
        default=0,
    )
    damage_steps: tuple[int, ...] = field(
        "CA steps before which the damage is done, ascending: 0 is the start itself, at most T-1", default=()
    )
    flip: float = field(
        "Bit flips: the probability that a bit of a cell flips before a CA step, drawn for each sample and step",
        UP_TO_ONE,
        default=0.0,
    )
    stuck_cells: float = field(
        "Stuck-at faults of cells: the share of cells, drawn for each sample, that are stuck in all channels "
        "before every CA step",
        UP_TO_ONE,
        default=0.0,
    )
    stuck_gates: float = field(
        "Stuck-at faults of gates: the share of gates, drawn for each epoch, that are stuck in training; "
        "evaluations on the probes use all gates",
        UP_TO_ONE,
        default=0.0,
    )
    stuck_at: str = field(
        "The value at which what is drawn is stuck: 0, 1, or either, drawn as well", one_of(STUCK_AT), default="either"
    )
    stuck_list: tuple[str, ...] = field(
        'Cells that are stuck in every sample, each as "ROW,COLUMN=VALUE", counted from 0', default=()
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Given where nothing uses it is refused as well: it would silently not be what somebody asked for.
        for name, used in (("picture", self.target), ("start_picture", self.start), ("rule", self.target)):
            given, needed = bool(getattr(self, name)), used == name.removeprefix("start_")
            require(given or not needed, f"{name} is missing: {_user_of(name)} needs it.")
            require(needed or not given, f"{name} is given, but only {_user_of(name)} uses it.")
        self._check_pictures()
        self._check_rule()
        self._check_steps()
        for cell in self.stuck_list:
            found = _CELL.fullmatch(cell)
            require(
                found is not None and int(found[1]) < self.height and int(found[2]) < self.width,
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
            require(
                self.loss_channels == 1,
                f"A rule only sets channel 0: loss_channels must be 1, got {self.loss_channels}.",
            )
        if self.start == "boards":
            # A board's number has a bit for each cell, and is drawn below a power of two: 16 cells are 65536 boards.
            cells = self.height * self.width
            require(
                cells <= MAX_BOARD_CELLS,
                f'start "boards" draws from all boards of at most {MAX_BOARD_CELLS} cells, the grid has {cells}.',
            )

    def _check_steps(self) -> None:
        # An engine walks through the steps once, forwards, and stops at each that is named: hence ascending, each once.
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
        """CA steps after which the loss is taken."""
        return self.loss_steps or (self.steps,)

    @property
    def shortest_side(self) -> int:
        """The shortest side of the grid; for a single row its width."""
        return self.width if self.height == 1 else min(self.height, self.width)

    def on_side(self, side: int) -> tuple[int, int]:
        """Height and width of a smaller grid, which of a line is a line."""
        return (1 if self.height == 1 else side), side

    @property
    def is_fixed(self) -> bool:
        """Return whether the target is the same for every start."""
        return self.target not in ("rule", "data")

    @property
    def stuck_listed(self) -> list[tuple[int, int, int]]:
        """Row, column and value of the cells in `stuck_list`."""
        parts = (each.replace("=", ",").split(",") for each in self.stuck_list)
        return [(int(row), int(column), int(value)) for row, column, value in parts]

    @property
    def faulty(self) -> bool:
        """Return whether faults change states on the way: bit flips, or cells that are stuck."""
        return bool(self.flip or self.stuck_cells or self.stuck_list)

    @property
    def disturbed(self) -> bool:
        """Return whether anything happens to states on the way: damage, or faults."""
        return bool(self.damage_steps) or self.faulty

    @property
    def can_grow(self) -> bool:
        """Return whether smaller grids can prepare it: a picture is of one size, and events are of its own steps."""
        return (
            self.start == "random"
            and self.target in ("checkerboard", "rule")
            and not self.loss_steps
            and not self.disturbed
        )


@section
class DataConfig(Section):
    """`[data]` names the samples of the target `data`, which a run keeps in its data.npz."""

    path = "data."

    sha256: str = field("The SHA-256 of the samples: `data` sets it, and the sizes; empty: none", default="")
    samples: int = field("Samples, N", WHOLE, default=0)
    channels: int = field("The first so many channels begin with a sample's own", WHOLE, default=0)
    targets: int = field("Targets of a sample: 1 for all of task.loss_steps, or one for each", COUNT, default=1)
    held_out: float = field(
        "Share of the samples that are not learned from, but tested on; 0: both are all of them", BELOW_ONE, default=0.2
    )


@section
class PluginConfig(Section):
    """`[plugin]` says whose samples are learned; everything else of a run follows from them and the other sections."""

    path = "plugin."

    name: str = field(
        "The task in Python that draws the samples, DISTRIBUTION:NAME by its entry point; empty: `data` gives them",
        default="",
    )
    version: str = field("The task's own version", default="")
    settings: Table = field(
        "The task's own settings, of which those that are left out are its defaults", default=Table()
    )


def _user_of(name: str) -> str:
    return {"picture": 'target "picture"', "rule": 'target "rule"', "start_picture": 'start "picture"'}[name]
