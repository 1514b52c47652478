"""Draw a run to a file: a rollout (as an animation or a strip), its gates or its losses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from difflogic.config import picture_file
from difflogic.config.choices import DRAWINGS, STARTS
from difflogic.config.resized import resized
from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.core.bits import Bits
from difflogic.devices import cost
from difflogic.engine import events, job
from difflogic.engine.api import Engine
from difflogic.errors import DataError, UsageError
from difflogic.evaluation import rehearsal, trained_circuit
from difflogic.evaluation.rollout import DamagePlan, evenly, play
from difflogic.evaluation.trained_circuit import TrainedCircuit, engine_of
from difflogic.model.statistics import census
from difflogic.runs import film, plots
from difflogic.runs.chosen import Source, path_of
from difflogic.system.array_files import bits_in
from difflogic.system.cache import warn
from difflogic.system.files import Output, check_links

PICTURES = (".png", ".gif", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm")
KINDS = {".gif": "gif", ".apng": "apng", ".png": "png"}
FILM_FRAMES, STRIP_FRAMES = 200, 8
"""Default maximum numbers of states in an animation and in a strip."""


@dataclass(frozen=True)
class RenderSpec:
    """Specification of a rollout to draw; a field that is None has the value from training."""

    size: tuple[int, int] | None = None
    """Rows and columns of the grid."""
    steps: int | None = None
    start: str | None = None
    """One of `config.choices.STARTS`, an image file, or a .npy file of zeros and ones, `[H, W]` or `[H, W, C]`."""
    seed: int | None = None
    """Seed of the random initial state, fire masks and damage positions."""
    fire_rate: float | None = None
    damage: DamagePlan | None = None
    periodic: bool | None = None
    rollouts: int = 1
    """Number of rollouts drawn side by side, from one initial state, with different fire masks and damage positions."""


def states(engine: Engine, trained: TrainedCircuit, spec: RenderSpec, draw: int) -> Iterator[Bits]:
    """Return the states `[H, W, C]` of rollout number `draw` (from 0). Raises UsageError."""
    task = trained.config.task
    config = resized(trained.config, *(spec.size or (task.height, task.width)))
    steps = task.steps if spec.steps is None else spec.steps
    seed = config.seed if spec.seed is None else spec.seed
    # With separate keys, the initial state does not depend on steps and masks.
    start_key, play_key = prng.split(rehearsal.evaluation_key(replace(config, seed=seed)))
    start = _start(trained, config, spec.start, start_key)
    fire_rate = config.train.fire_rate if spec.fire_rate is None else spec.fire_rate
    circuit = trained.circuit
    if spec.damage is not None:
        spec.damage.check_fits(config.task.height, config.task.width)
    # The boundary may differ from that of training.
    if spec.periodic is not None:
        circuit = replace(circuit, periodic=spec.periodic)
    # The first rollout does not depend on the number of rollouts.
    if draw:
        play_key = prng.fold_in(play_key, draw)
    return (batch[0] for batch in play(engine, circuit, start[None], steps, play_key, fire_rate, spec.damage))


def _start(trained: TrainedCircuit, config: Config, start: str | None, key: prng.Key) -> Bits:
    shape = (config.task.height, config.task.width, config.model.channels)
    grid = np.zeros(shape, dtype=np.uint8)
    if start is None and (samples := trained.data()) is not None:
        first = samples.split(config.data.held_out)[1].only(np.arange(1))
        _place(grid, job.begun(trained.config, first, key)[0], "The sample")
        return grid
    if start is None or start == config.task.start:
        return np.asarray(rehearsal.fresh_starts(config, 1, key)[0])
    if start == "picture":
        raise UsageError("The run has no initial image: give an image file, such as --start start.png.")
    if start in ("random", "boards"):
        return np.asarray(events.draw_starts("random", key, (1, *shape), None)[0])
    if start == "seed":
        grid[shape[0] // 2, shape[1] // 2] = 1
    elif start not in STARTS:
        _place(grid, _from_file(Path(start), config), start)
    return grid


def _place(grid: Bits, bits: Bits, name: str) -> None:
    height, width, channels = bits.shape
    if height > grid.shape[0] or width > grid.shape[1] or channels > grid.shape[2]:
        raise DataError(
            f"{name} does not fit into the grid: expected at most {grid.shape[1]}x{grid.shape[0]} cells of "
            f"{grid.shape[2]} channels, got {width}x{height} cells of {channels}. Give a larger --size."
        )
    # As in training and `simulate`, an odd margin is larger at the bottom and at the right.
    top, left = (grid.shape[0] - height) // 2, (grid.shape[1] - width) // 2
    grid[top : top + height, left : left + width, :channels] = bits


def _from_file(path: Path, config: Config) -> Bits:
    """Return the bits `[h, w, c]` of a .npy or image file; an image is reduced to the target's number of colours."""
    if path.suffix.lower() in PICTURES:
        channels = config.task.loss_channels
        colors = next((count for count, needed in picture_file.CHANNELS.items() if needed >= channels), 64)
        return picture_file.load(path, colors).bits
    if path.suffix.lower() != ".npy":
        kinds = ", ".join((".npy", *PICTURES))
        raise UsageError(f"Expected --start {', '.join(STARTS)} or a file ending in {kinds}, got {str(path)!r}.")
    array = bits_in(path, "start", "[H, W]", "[H, W, C]")
    return array if array.ndim == 3 else array[..., None]


Channels = Literal["loss", "all"] | int


def _seen(state: Bits, channels: Channels, loss_channels: int) -> npt.NDArray[np.uint8]:
    """Return RGB `[h, w, 3]` of a state `[H, W, C]`: loss channels in colour, all channels as tiles, or one channel."""
    if channels == "all":
        return film.tiles(state)
    if channels == "loss":
        return plots.colors(state[..., :loss_channels])
    if not 0 <= channels < state.shape[-1]:
        raise UsageError(f"Expected a channel from 0 to {state.shape[-1] - 1}, got {channels}.")
    return plots.colors(state[..., channels : channels + 1])


@dataclass(frozen=True)
class Look:
    """Appearance of a drawn rollout; a field that is None is chosen automatically."""

    channels: Channels = "loss"
    scale: int | None = None
    steps: Sequence[int] | None = None
    """Steps of the states to show."""
    frame_ms: int = film.FRAME_MS


def render(
    run: Source,
    out: Path | str,
    what: str = "rollout",
    spec: RenderSpec | None = None,
    look: Look | None = None,
    engine: Engine | None = None,
    member: int | None = None,
    force: bool = False,
) -> int:
    """Draw a run: a rollout, its gates or its losses.

        >>> difflogic.render(folder, folder / "film.gif", engine=engine) > 100
        True

    Args:
        run: Run, run folder or checkpoint file.
        out: File to write, as an animation (.gif or .apng) or a strip of states (.png).
        what: Subject of the image: `rollout`, `gates` or `loss`.
        spec: Size, steps, initial state and damage of the rollout, or None for those of training.
        look: Channels, scale and steps to show, or None for the defaults.
        engine: Engine that computes the rollout, or None for the engine of the run.
        member: Model of a population, counted from 1, or None for the best model.
        force: Whether to replace an existing file.

    Returns:
        Size of the file in bytes.

    Raises:
        UsageError: If an argument does not fit the run, or if `out` exists and `force` is False.
        CheckpointError: If there is no usable trained circuit.
        RunFolderError: If a link leads out of the run folder.
    """
    kind = kind_of(Path(out), what)
    output = Output(Path(out), force)
    check_links(Path(run))
    trained = trained_circuit.load(path_of(run), member)
    if what == "gates":
        data = plots.gates_png(census(trained.circuit), f"{trained.title}: gates by layer")
    elif what == "loss":
        if not trained.rows:
            raise UsageError(f"No metrics for {trained.path}: expected a run folder with metrics.jsonl.")
        data = plots.loss_png(trained.rows, trained.config, trained.title)
    else:
        data = rollout_picture(engine or engine_of(trained), trained, spec or RenderSpec(), look or Look(), kind)
    output.write(data)
    return len(data)


def rollout_picture(engine: Engine, trained: TrainedCircuit, spec: RenderSpec, look: Look, kind: str) -> bytes:
    """Return a rollout as an image in the format `kind`: `gif`, `apng` or `png`. Raises UsageError or LimitError."""
    task = trained.config.task
    steps = task.steps if spec.steps is None else spec.steps
    height, width = spec.size or (task.height, task.width)
    # Memory is estimated first, since all frames are in memory together: a GIF has one palette. A strip has an image
    # per state, or one image of all states if the grid is a row.
    shown = _shown(look.steps, steps, STRIP_FRAMES if kind == "png" and height > 1 else FILM_FRAMES)
    colours = 3 * (trained.circuit.channels if look.channels == "all" else 1) * (look.scale or 1) ** 2
    long = cost.check_rollout(trained.config.model, height * width, steps, len(shown) * colours * spec.rollouts)
    if long is not None:
        warn(long)
    rate = trained.config.train.fire_rate if spec.fire_rate is None else spec.fire_rate
    if spec.rollouts > 1 and rate == 1 and (spec.damage is None or spec.damage.place != "random"):
        raise UsageError(
            "All rollouts of this synchronous circuit from one initial state are identical: add --async for random "
            "fire masks, or omit --rollouts."
        )
    played = zip(*(states(engine, trained, spec, draw) for draw in range(spec.rollouts)), strict=True)
    steps_shown, loss_channels = set(shown), trained.config.task.loss_channels
    drawn = (several for step, several in enumerate(played) if step in steps_shown)
    frames = [film.beside([_seen(state, look.channels, loss_channels) for state in several]) for several in drawn]
    # Hexagons would distort the tiles of all channels.
    neighbourhood = "moore" if look.channels == "all" else trained.circuit.neighbourhood
    if kind == "png":
        return film.strip(np.stack(frames), [f"step {step}" for step in shown], look.scale, neighbourhood)
    return film.animation(np.stack(frames), kind, look.scale, look.frame_ms, neighbourhood)


def _shown(requested: Sequence[int] | None, steps: int, most: int) -> list[int]:
    if requested is None:
        return evenly(steps, most)
    beyond = [step for step in requested if not 0 <= step <= steps]
    if beyond:
        raise UsageError(f"Expected steps from 0 to {steps}, the length of the rollout, got {beyond[0]}.")
    return sorted(set(requested))


def kind_of(path: Path, what: str) -> str:
    """Return the image format for the suffix of `path`. Raises UsageError if the suffix is unsupported for `what`."""
    kind = KINDS.get(path.suffix.lower())
    if what not in DRAWINGS:
        raise UsageError(f"Unknown kind of image {what!r}: expected one of {', '.join(DRAWINGS)}.")
    expected = ", ".join(KINDS) if what == "rollout" else ".png"
    if kind is None or (what != "rollout" and kind != "png"):
        raise UsageError(f"Expected a file name ending in {expected} for {what}, got {path}.")
    return kind
