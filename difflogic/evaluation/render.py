"""`render`: a rollout of a run's hard circuit as a film or a strip, its gates, or its losses, as one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from difflogic import files, prng, starts
from difflogic.config import STARTS, Config
from difflogic.engine import Engine
from difflogic.errors import DataError, DifflogicError, UsageError
from difflogic.train import film, picture_file, pictures
from difflogic.train.evaluation import subject as subjects
from difflogic.train.evaluation import worlds
from difflogic.train.evaluation.census import census
from difflogic.train.evaluation.rollout import Bits, DamagePlan, evenly, play
from difflogic.train.evaluation.subject import Subject, engine_of

PICTURES = (".png", ".gif", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm")
KINDS = {".gif": "gif", ".apng": "apng", ".png": "png"}
WHAT = ("rollout", "gates", "loss")
FILM_FRAMES, STRIP_FRAMES = 200, 8
"""States shown where nobody says which."""


@dataclass(frozen=True)
class Scene:
    """A rollout to show; None is as the run was trained."""

    size: tuple[int, int] | None = None
    """Rows and columns."""
    steps: int | None = None
    start: str | None = None
    """One of `difflogic.config.STARTS`, or a .npy file of 0/1 `[H, W]` or `[H, W, C]`, or a picture."""
    seed: int | None = None
    """Of a drawn start, fire masks and places of damage."""
    fire_rate: float | None = None
    damage: DamagePlan | None = None
    periodic: bool | None = None


def states(engine: Engine, subject: Subject, scene: Scene) -> tuple[Iterator[Bits], int]:
    """The states uint8 `[H, W, C]` of a scene, and its number of steps. Raises UsageErrors."""
    task = subject.config.task
    config = worlds.resized(subject.config, *(scene.size or (task.height, task.width)))
    steps = task.steps if scene.steps is None else scene.steps
    seed = config.seed if scene.seed is None else scene.seed
    start_key, play_key = prng.split(worlds.fresh_key(replace(config, seed=seed)))
    start = _start(config, scene.start, start_key)
    fire_rate = config.train.fire_rate if scene.fire_rate is None else scene.fire_rate
    circuit = subject.circuit
    if scene.periodic is not None:
        circuit = replace(circuit, periodic=scene.periodic)
    played = play(engine, circuit, start[None], steps, play_key, fire_rate, scene.damage)
    return _first(played), steps


def _first(batches: Iterator[Bits]) -> Iterator[Bits]:
    for batch in batches:
        sample: Bits = batch[0]
        yield sample


def _start(config: Config, start: str | None, key: prng.Key) -> Bits:
    if start is None or start == config.task.start:
        return np.asarray(worlds.fresh(config, 1, key)[0])
    if start == "picture":
        raise UsageError("The run has no start picture of its own: name a file, say --start start.png.")
    shape = (config.task.height, config.task.width, config.model.channels)
    if start in ("random", "boards"):
        return np.asarray(starts.draw("random", key, (1, *shape), None)[0])
    grid = np.zeros(shape, dtype=np.uint8)
    if start == "seed":
        grid[shape[0] // 2, shape[1] // 2] = 1
    elif start not in STARTS:
        _place(grid, _from_file(Path(start), config), start)
    return grid


def _place(grid: Bits, bits: Bits, name: str) -> None:
    """In the middle, in the first channels."""
    height, width, channels = bits.shape
    if height > grid.shape[0] or width > grid.shape[1] or channels > grid.shape[2]:
        raise DataError(
            f"{name} has {height}x{width} cells of {channels} channels, but the grid has {grid.shape[0]}x"
            f"{grid.shape[1]} of {grid.shape[2]}: give a larger --size."
        )
    top, left = grid.shape[0] // 2 - height // 2, grid.shape[1] // 2 - width // 2
    grid[top : top + height, left : left + width, :channels] = bits


def _from_file(path: Path, config: Config) -> Bits:
    """`[h, w, c]`, 0 or 1; a picture has as many colours as the run's target."""
    if path.suffix.lower() in PICTURES:
        channels = config.task.loss_channels
        colors = next((count for count, needed in picture_file.CHANNELS.items() if needed >= channels), 64)
        return picture_file.load(path, colors)
    if path.suffix.lower() != ".npy":
        kinds = ", ".join((".npy", *PICTURES))
        raise UsageError(f"A start is {', '.join(STARTS)}, or a file that ends with {kinds}, got {str(path)!r}.")
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"Cannot read the start {path}: {error}.") from error
    if not isinstance(array, np.ndarray) or array.ndim not in (2, 3) or array.dtype.kind not in "biuf":
        raise DataError(f"The start {path} must be an array of 0 and 1, [H, W] or [H, W, C].")
    if not np.isin(array, (0, 1)).all():
        raise DataError(f"The start {path} must hold nothing but 0 and 1.")
    bits: Bits = array.astype(np.uint8)
    return bits if bits.ndim == 3 else bits[..., None]


Channels = Literal["loss", "all"] | int


def _seen(state: Bits, channels: Channels, loss_channels: int) -> npt.NDArray[np.uint8]:
    """RGB `[h, w, 3]` of a state `[H, W, C]`: its loss channels as colours, all as tiles, or one in black and white."""
    if channels == "all":
        return film.tiles(state)
    if channels == "loss":
        return pictures.colors(state[..., :loss_channels])
    if not 0 <= channels < state.shape[-1]:
        raise UsageError(f"There is no channel {channels}: a cell has channels 0 to {state.shape[-1] - 1}.")
    return pictures.colors(state[..., channels : channels + 1])


@dataclass(frozen=True)
class Look:
    """How a rollout is shown; None is what fits."""

    channels: Channels = "loss"
    scale: int | None = None
    """Pixels a cell."""
    steps: Sequence[int] | None = None
    """The states to show, by CA step."""
    frame_ms: int = film.FRAME_MS


def render(
    run: Path | str,
    out: Path | str,
    what: str = "rollout",
    scene: Scene | None = None,
    look: Look | None = None,
    engine: Engine | None = None,
    member: int | None = None,
    force: bool = False,
) -> int:
    """Write `out` and return its size in bytes: a `rollout`, its `gates`, or its `loss` curves.

    The ending of `out` decides: .gif and .apng move, .png is a strip of steps. A rollout is computed on `engine`, by
    default the one that the run was on. Raises UsageError for what cannot be shown, or where `out` exists and
    `force` is not set, CheckpointError where the run in a folder or checkpoint file has no usable, trained circuit.
    """
    out = Path(out)
    kind = kind_of(out, what)
    check_free(out, force)
    subject = subjects.load(Path(run), member)
    if what == "gates":
        data = pictures.gates_png(census(subject.circuit), f"{subject.title}: gates by layer")
    elif what == "loss":
        data = _loss_picture(subject)
    else:
        data = rollout_picture(engine or engine_of(subject), subject, scene or Scene(), look or Look(), kind)
    write(out, data, force)
    return len(data)


def rollout_picture(engine: Engine, subject: Subject, scene: Scene, look: Look, kind: str) -> bytes:
    """A `gif`, an `apng`, or a strip as `png`. Raises UsageErrors."""
    played, steps = states(engine, subject, scene)
    shown = _shown(look.steps, steps, kind)
    wanted, loss_channels = set(shown), subject.config.task.loss_channels
    frames = [_seen(state, look.channels, loss_channels) for step, state in enumerate(played) if step in wanted]
    if kind == "png":
        return film.strip(np.stack(frames), [f"step {step}" for step in shown], look.scale)
    return film.animation(np.stack(frames), kind, look.scale, look.frame_ms)


def _shown(asked: Sequence[int] | None, steps: int, kind: str) -> list[int]:
    if asked is None:
        return evenly(steps, STRIP_FRAMES if kind == "png" else FILM_FRAMES)
    beyond = [step for step in asked if not 0 <= step <= steps]
    if beyond:
        raise UsageError(f"The rollout has steps 0 to {steps}, but step {beyond[0]} should be shown.")
    return sorted(set(asked))


def _loss_picture(subject: Subject) -> bytes:
    if not subject.rows:
        raise UsageError(f"There are no metrics beside {subject.path}: name a run folder with metrics.jsonl.")
    return pictures.loss_png(subject.rows, subject.title)


def kind_of(path: Path, what: str) -> str:
    """By the file's ending. Raises UsageError for one that is unknown, or does not suit `what`."""
    kind = KINDS.get(path.suffix.lower())
    if what not in WHAT:
        raise UsageError(f"There is no picture {what!r}: expected {', '.join(WHAT)}.")
    expected = ", ".join(KINDS) if what == "rollout" else ".png"
    if kind is None or (what != "rollout" and kind != "png"):
        raise UsageError(f"The ending of {path} says what to write: for {what} expected {expected}.")
    return kind


def write(path: Path, data: bytes, force: bool) -> None:
    """The whole file or nothing. Raises UsageError where it exists and may not be replaced, or cannot be written."""
    check_free(path, force)
    try:
        files.write_atomically(path, data)
    except OSError as error:
        raise DifflogicError(f"Cannot write {path}: {error.strerror or error}.") from error


def check_free(path: Path, force: bool) -> None:
    """Raises UsageError where `path` must not or cannot be written, before any work is done for it."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it.")
    if path.exists() and not force:
        raise UsageError(f"{path} exists already: choose another name, or replace it with --force.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent} to write {path.name} to.")
