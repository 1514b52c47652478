"""Configuration of a training request: its preset, changed by its target, initial state, recipe and fields."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from difflogic.config import kept_starts, picture_file, presets, recipes, registered
from difflogic.config.choices import STARTS
from difflogic.config.fields import hint, merged, plain
from difflogic.config.picture_file import CHANNELS, Picture
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.config.task import MAX_BOARD_CELLS, MIN_SIDE
from difflogic.core import rules, text_picture
from difflogic.core.bits import Bits
from difflogic.core.rules import ENTRIES
from difflogic.errors import ConfigError, DataError, UsageError
from difflogic.system.array_files import read_array

Asked = TypeVar("Asked", bound=TrainRequest)
Changes = dict[str, dict[str, Any]]
"""Mapping from section names to changed fields and their values, in the form that `Config.from_dict` takes."""
RULE_DIGITS = ENTRIES // 4
MAX_RULE_BYTES = 1 << 16
EXPECTED_RULE = (
    f"expected {ENTRIES} digits 0 and 1, or {RULE_DIGITS} hexadecimal digits, as text, with any white "
    f"space, or {ENTRIES} numbers 0 and 1 in an .npy file; entry n is the next state of the cell whose patch, row by "
    "row, is the bits of n, most significant first"
)


class Configured(NamedTuple, Generic[Asked]):
    """Configuration of a request, with the base configuration and the changes from which it was made."""

    request: Asked
    """Request with `config` in place of its preset, and with the recipe that was applied."""
    config: Config
    base: Config
    """Configuration of the preset, or of the request, before any change."""
    changes: Changes
    """Fields that follow from the request's target and initial state; fields set in the request override them."""
    notices: tuple[str, ...] = ()
    """Sentences for the user about changes and lost details of images."""


def configure(request: Asked) -> Configured[Asked]:
    """Return the configuration of a request: apply its target and initial state, then its recipe, then its fields.

    The grid's size is fixed if the request has a configuration or sets the grid's height or width. Raises ConfigError,
    DataError or UsageError.
    """
    # An image depends on the grid and the channels, so these fields are read first; all fields are applied last.
    request = _with_task(replace(request, recipe=recipe_of(request)))
    base, fields = base_of(request), request.set
    cells = _asked(fields, "task", "height"), _asked(fields, "task", "width")
    is_fixed = request.config is not None or cells != (None, None)
    grid = (cells[0] or base.task.height, cells[1] or base.task.width) if is_fixed else None
    changed, notices = changes(base, request, grid, _asked(fields, "model", "channels") or base.model.channels)
    config = base.with_(**merged(changed, fields))
    config = recipes.applied(str(request.recipe), config).with_(**fields)
    if request.preset is None and request.config is None and "name" not in fields and request.data is None:
        file = request.target or request.rule_table
        config = config.with_(name=str(request.rule).replace("/", "")[:100] if file is None else named(file))
    if request.starts is not None:
        config = kept_starts.kept(config, kept_starts.load(request.starts, config))
    return Configured(replace(request, preset=None, config=config), config, base, changed, notices)


def named(file: Path) -> str:
    """Return the name of a run whose target is in `file`: the file's stem without unprintable characters."""
    return "".join(character for character in file.stem if character.isprintable())[:100] or "data"


def recipe_of(request: TrainRequest) -> str:
    """Return the request's recipe, by default its preset's; for a configuration, `paper`, which changes nothing."""
    return request.recipe or ("paper" if request.config is not None else recipes.usual(base_of(request)))


def _with_task(request: Asked) -> Asked:
    """Replace the request's task in Python, if any, by a configuration with that task's settings and samples."""
    preset, config = request.preset, request.config
    if preset is None and isinstance(config, Config) and config.plugin.name:
        config, fields = registered.configure(config, request.set)
    elif preset is not None and config is None and registered.is_task(preset):
        config, fields = registered.configure(preset, request.set)
    else:
        return request
    return replace(request, preset=None, config=config, set=fields)


def base_of(request: TrainRequest) -> Config:
    """Return the configuration of the request, or of its preset, data or target. Raises ConfigError or UsageError."""
    if isinstance(request.config, Config) and request.preset is None:
        return request.config
    if request.preset is not None and request.config is None:
        return presets.get(request.preset)
    if request.data is not None and request.preset is None:
        return presets.of_samples(request.data)
    if request.preset is None and (request.target or request.rule or request.rule_table) is not None:
        return presets.image() if request.target is not None else presets.game_of_life()
    raise UsageError(
        "Nothing to train: give one of `preset`, `config`, `target`, `rule`, `rule_table` or `data`. "
        "`difflogic presets` lists the presets."
    )


def _check(request: TrainRequest) -> None:
    targets = [f"`{name}`" for name in ("target", "rule", "rule_table", "data") if getattr(request, name) is not None]
    if len(targets) > 1:
        raise UsageError(f"There can be only one target: give {' or '.join(targets)} alone.")
    has_image = request.target is not None or (request.start is not None and request.start not in STARTS)
    for name in ("colors", "size", "threshold", "invert"):
        if getattr(request, name) is not None and not has_image:
            raise UsageError(f"`{name}` is for images: give `target` or `start` with it.")
    if request.padding and request.target is None:
        raise UsageError("`padding` is for images: give `target` with it.")


def changes(
    config: Config, request: TrainRequest, fixed: tuple[int, int] | None, channels: int
) -> tuple[Changes, tuple[str, ...]]:
    """Return the fields to change in `config`, and notices about images. Raises ConfigError, DataError or UsageError.

    Args:
        config: Configuration before the change.
        request: Request with the target and the initial state.
        fixed: Height and width of the grid if they must not change, otherwise None.
        channels: Number of channels per cell.
    """
    _check(request)
    changed: Changes = {"task": {}, "model": {}, "train": {}, "pool": {}, "data": {}}
    grid = fixed or (config.task.height, config.task.width)
    notices: tuple[str, ...] = ()
    if request.target is not None:
        picture = _picture(request.target, request, channels)
        grid, notices = _room(request, picture.bits, fixed), picture.notices
        changed["task"] |= _picture_target(config, request.target, _centred(request.target, picture.bits, grid))
    elif request.rule is not None or request.rule_table is not None:
        rule = load_rule(request.rule_table) if request.rule_table is not None else str(request.rule)
        _aim_at_rule(changed, config, rule, fixed)
    elif request.data is not None and request.data.sha256 != config.data.sha256:
        changed["task"] |= {"picture": [], "start_picture": [], "rule": "", "start": "zeros", "stays": False}
        changed["pool"]["size"] = 0
        changed = merged(changed, request.data.fields())
    if request.start is not None:
        grid = tuple(changed["task"].get(name, side) for name, side in zip(("height", "width"), grid, strict=True))
        notices += _begin_with(changed, request, grid, channels)
    return changed, tuple(dict.fromkeys(notices))


def _picture_target(config: Config, path: Path, bits: Bits) -> dict[str, Any]:
    height, width, loss_channels = bits.shape
    if (bits == bits[0, 0]).all():
        raise DataError(
            f"{path} is read as a single colour, so there is nothing to learn: give an image with at least two, "
            f"another `threshold` (default: {picture_file.THRESHOLD}), or `padding` around the image."
        )
    rows, grid = plain(text_picture.encode(bits)), {"height": height, "width": width}
    task = {"target": "picture", "picture": rows, "rule": "", **grid, "loss_channels": loss_channels}
    # An image that stays needs as many steps as its longer side has cells.
    grows = {"steps": max(config.task.steps, height, width)} if config.task.stays else {}
    return task | grows | ({"start": "seed"} if config.task.start == "boards" else {})


def _aim_at_rule(changed: Changes, config: Config, text: str, fixed: tuple[int, int] | None) -> None:
    """Set the target in `changed` to one step of the rule `text`, from all initial boards if these are few."""
    rule, (_, is_periodic, size) = rules.parse(text).name, rules.bounds(text)
    fixed = fixed or size
    changed["task"]["rule"] = rule + rules.grid(text)
    neighbourhood = rules.parse(rule).neighbourhood or config.model.neighbourhood
    # If the preset has a rule as its target, the new rule is learned on the same boards.
    if config.task.target == "rule" and neighbourhood == config.model.neighbourhood and size is None:
        return
    changed["model"]["neighbourhood"] = neighbourhood
    smallest = (1 if neighbourhood == "line" else MIN_SIDE), MIN_SIDE
    height, width = fixed or (smallest if config.model.channels == 1 else (config.task.height, config.task.width))
    boards = config.model.channels == 1 and height * width <= MAX_BOARD_CELLS
    sizes = {"height": height, "width": width, "steps": 1, "loss_channels": 1, "damage_side": 0}
    changed["task"] |= {"target": "rule", "start": "boards" if boards else "random", **sizes, "stays": False}
    changed["task"] |= {name: [] for name in ("picture", "start_picture", "loss_steps", "damage_steps", "stuck_list")}
    changed["model"]["periodic"] = is_periodic
    changed["train"]["fire_rate"] = 1.0
    changed["pool"]["size"] = 0


def _begin_with(changed: Changes, request: TrainRequest, grid: tuple[int, ...], channels: int) -> tuple[str, ...]:
    """Set the request's initial state in `changed`, and return notices about its image."""
    start = str(request.start)
    changed["task"]["stays"] = False
    if start in STARTS and start != "picture":
        changed["task"] |= {"start": start, "start_picture": []}
        if start == "zeros":  # an empty torus looks the same from every cell
            changed["model"]["periodic"] = False
        return ()
    # A word that is neither a kind of initial state nor a file is more likely misspelled than a missing image.
    path = Path(start)
    if not path.suffix and not path.exists():
        words = [word for word in STARTS if word != "picture"]
        raise ConfigError(
            f"`start` must be one of {', '.join(words)}, or an image file, got {start!r}{hint(start, words)}."
        )
    picture = _picture(path, request, channels)
    bits = _centred(path, picture.bits, (grid[0], grid[1]))
    changed["task"] |= {"start": "picture", "start_picture": plain(text_picture.encode(bits))}
    return picture.notices


def _picture(path: Path, request: TrainRequest, channels: int) -> Picture:
    """Read an image with the request's options, by default in its own colours if `channels` can encode them."""
    colors = request.colors
    if colors is not None and CHANNELS[colors] > channels:
        fitting = max(number for number, needed in CHANNELS.items() if needed <= channels)
        raise ConfigError(
            f"{colors} colours take {CHANNELS[colors]} channels, but a cell has {channels}: give `colors` {fitting}, "
            "or a preset with more channels."
        )
    return picture_file.load(path, colors, request.size, request.threshold, request.invert, channels)


def _room(request: TrainRequest, bits: Bits, fixed: tuple[int, int] | None) -> tuple[int, int]:
    """Return the grid's height and width: `fixed`, or if that is None, the image's size plus the padding."""
    if fixed is not None:
        if request.padding:
            raise UsageError("`padding` sets the size of the grid, which is already given: omit one of them.")
        return fixed
    width, height = request.size or bits.shape[1::-1]
    sides = height + 2 * request.padding, width + 2 * request.padding
    if min(sides) < MIN_SIDE:
        raise ConfigError(
            f"A grid must have at least {MIN_SIDE}x{MIN_SIDE} cells: add some around {request.target} with `padding` 1."
        )
    return sides


def _centred(path: Path, bits: Bits, grid: tuple[int, int]) -> Bits:
    """Return the bits of an image, centred on the grid. Raises ConfigError if the image is larger than the grid."""
    # An odd margin has its extra cell below and at the right: 5 rows in 8 have 1 above and 2 below.
    (height, width), (rows, columns) = bits.shape[:2], grid
    if height > rows or width > columns:
        raise ConfigError(
            f"{path} is {width} cells wide and {height} high, but the grid is {columns} wide and {rows} high: "
            f"scale it down with `size` {columns}x{rows}, or give a larger grid."
        )
    above, left = (rows - height) // 2, (columns - width) // 2
    return np.pad(bits, ((above, rows - height - above), (left, columns - width - left), (0, 0)))


def _asked(fields: Mapping[str, Any], section: str, field: str) -> int | None:
    """Return the integer `fields[section][field]`, or None; the configuration later rejects other types."""
    inside = fields.get(section)
    value = inside.get(field) if isinstance(inside, dict) else None
    return value if type(value) is int else None


def load_rule(path: Path) -> str:
    """Return the rule table in a file as hexadecimal digits. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_RULE_BYTES)
    except OSError as error:
        raise ConfigError(f"Cannot read the rule table {path}: {error.strerror or error}.") from error
    try:
        digits = _digits(data)
    except (UnicodeDecodeError, DataError) as error:
        raise ConfigError(f"{path} is not a rule table: {EXPECTED_RULE}.") from error
    if len(digits) == ENTRIES and set(digits) <= set("01"):
        return f"{int(digits, 2):0{RULE_DIGITS}x}"
    if len(digits) != RULE_DIGITS or not set(digits) <= set("0123456789abcdef"):
        raise ConfigError(f"{path} is not a rule table: {EXPECTED_RULE}.")
    return digits


def _digits(data: bytes) -> str:
    """Return the digits in the contents of a rule file, or "" for an array that is not a table of 0 and 1."""
    if not data.startswith(b"\x93NUMPY"):
        return "".join(data.decode("utf-8-sig").split()).lower()
    entries = read_array(data, "rule table")
    is_table = entries.size == ENTRIES and entries.dtype.kind in "biuf" and np.isin(entries, (0, 1)).all()
    return "".join(map(str, entries.astype(int).ravel().tolist())) if is_table else ""
