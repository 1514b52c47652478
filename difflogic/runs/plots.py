"""Images of a run: loss curves, targets, gates and cells in colour. See `film` for animations."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import operator
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from difflogic.config import schedule
from difflogic.config.schema import Config
from difflogic.core import gates
from difflogic.engine.job import Job
from difflogic.model.statistics import Layer
from difflogic.runs import film
from difflogic.runs.journal import Row
from difflogic.system.cache import VARIABLE, user_cache

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL_PIXELS = 8
RULE_EXAMPLES = 8
"""Number of example grids in the target image of a rule."""
GREY = 128
LABEL_SHARE = 0.16
"""Approximate width of a stage's label as a fraction of the diagram's width."""


def loss_png(rows: Sequence[Row], config: Config, title: str) -> bytes:
    """Return a PNG with one panel each for the soft loss, the hard loss and the number of unconverged gates.

    Labelled vertical lines mark the stages of training, such as a larger grid or a search.
    """
    figure, (soft, hard, unconverged) = _panels(title, 3, config, rows)
    evaluated = [row for row in rows if row.hard_loss is not None]
    epochs = [row.epoch for row in evaluated]
    unconverged_counts = [math.nan if row.undecided is None else row.undecided for row in evaluated]
    soft.plot([row.epoch for row in rows], [row.soft_loss for row in rows], linewidth=1)
    hard.plot(epochs, [row.hard_loss for row in evaluated], "o-", color="C1", label="evaluation grids", markersize=4)
    hard.plot(epochs, [row.train_hard_loss for row in evaluated], "--", color="C1", label="training batch", linewidth=1)
    unconverged.plot(epochs, unconverged_counts, "o-", color="C2", markersize=4)
    hard.legend()
    _label(soft, "soft loss")
    _label(hard, "hard loss: wrong cells")
    _label(unconverged, "unconverged gates")
    return _png(figure)


def population_png(members: Sequence[Sequence[Row]], leader: int, config: Config, title: str) -> bytes:
    """Return a PNG with the soft and hard losses of all members, in colour for the member with index `leader`."""
    figure, (soft, hard) = _panels(title, 2, config, members[leader])
    crowd = {"color": "0.6", "linewidth": 0.6, "alpha": max(0.25, 1 / math.sqrt(len(members)))}
    order = [index for index in range(len(members)) if index != leader] + [leader]
    for index in order:
        rows, style = members[index], {"linewidth": 1.5} if index == leader else crowd
        label = "the best" if index == leader else "the others" if index == order[0] else None
        evaluated = [row for row in rows if row.hard_loss is not None]
        soft.plot([row.epoch for row in rows], [row.soft_loss for row in rows], label=label, **style)
        hard.plot([row.epoch for row in evaluated], [row.hard_loss for row in evaluated], **style)
    soft.legend()
    _label(soft, "soft loss")
    _label(hard, "hard loss: wrong cells")
    return _png(figure)


def returns_png(
    rows: Mapping[int, Sequence[Mapping[str, Any]]],
    best: int,
    threshold: float,
    title: str,
    size: tuple[float, float] = (8, 4.5),
    words: tuple[str, str] = ("environment steps", "mean return of an episode"),
) -> bytes:
    """Return a PNG with the agents' mean returns over environment steps, and evaluations of the agent with seed `best`.

    `rows` maps seeds to metrics, `threshold` is the return of a solution, `size` is the width and height in inches, and
    `words` are the labels of the x and y axes.
    """
    figure, axes = _diagram(*size, *words, title)
    for seed, rows_of_seed in rows.items():
        first = seed == best
        style: dict[str, Any] = {"color": "C0" if first else "0.75", "zorder": 3 if first else 1}
        label = f"in training, seed {seed}" if first else None
        returns = [math.nan if row["mean_return"] is None else row["mean_return"] for row in rows_of_seed]
        axes.plot([row["steps"] for row in rows_of_seed], returns, linewidth=1, label=label, **style)
        points = [(row["steps"], row["score"]) for row in rows_of_seed if row["score"] is not None]
        if first and points:
            axes.plot(*zip(*points, strict=True), "o-", color="C1", markersize=4, label="evaluated", zorder=4)
    if math.isfinite(threshold):
        axes.axhline(threshold, color="0.5", linestyle=":", linewidth=1, label="threshold of a solution")
    axes.legend()
    return _png(figure)


@cache
def _load_matplotlib() -> None:
    """Import matplotlib, ignoring the backend in MPLBACKEND and suppressing messages about its cache."""
    # A command in a notebook inherits the kernel's backend, which may be missing in its environment.
    is_first = "matplotlib" not in sys.modules
    backend = os.environ.pop("MPLBACKEND", None) if is_first else None
    folder = user_cache() / "matplotlib"
    if VARIABLE in os.environ:  # without the variable, matplotlib reads the user's settings
        os.environ.setdefault("MPLCONFIGDIR", str(folder))
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    import matplotlib as mpl
    import matplotlib.figure

    logger.setLevel(level)
    # A matplotlibrc in the current folder is ignored, since one from another person may run LaTeX.
    if is_first and not Path(mpl.matplotlib_fname()).is_absolute():
        mpl.rcdefaults()
    if backend is not None:
        os.environ["MPLBACKEND"] = backend
        with contextlib.suppress(ValueError):
            mpl.rcParams["backend"] = backend


def _figure(width: float, height: float, dpi: int) -> Figure:
    _load_matplotlib()
    from matplotlib.figure import Figure

    # pyplot would look for a display, and keep every figure in memory until it is closed.
    return Figure(figsize=(width, height), dpi=dpi, layout="constrained")


def _diagram(width: float, height: float, x: str, y: str, title: str = "", dpi: int = 110) -> tuple[Figure, Axes]:
    """Return a figure with one diagram; `x` and `y` are the labels of its axes, not interpreted as TeX."""
    figure = _figure(width, height, dpi)
    axes = figure.subplots()
    axes.set_title(title, parse_math=False)
    axes.set_xlabel(x, parse_math=False)
    axes.set_ylabel(y, parse_math=False)
    axes.grid(True, alpha=0.3)
    return figure, axes


def _panels(title: str, count: int, config: Config, rows: Sequence[Row]) -> tuple[Figure, Any]:
    """Return a figure with `count` stacked panels over epochs, and a labelled line at the beginning of each stage."""
    figure = _figure(8, 1.5 + 2 * count, 110)
    panels = figure.subplots(count, 1, sharex=True)
    figure.suptitle(title, parse_math=False)
    figure.align_ylabels(panels)
    panels[-1].set_xlabel("epoch")
    # Stages have grids of different sizes, so losses on both sides of a line cannot be compared.
    marks = [(epoch, words) for epoch, words in schedule.marks(config) if epoch < len(rows)]
    for axes in panels:
        for epoch, _ in marks:
            axes.axvline(epoch, color="0.5", linestyle=":", linewidth=1)
    if marks:
        epochs = [epoch for epoch, _ in marks]
        is_narrow = min(map(operator.sub, epochs[1:], epochs), default=len(rows)) < LABEL_SHARE * len(rows)
        top = panels[0].secondary_xaxis("top")
        top.set_xticks(epochs, [words for _, words in marks], rotation=20 if is_narrow else 0, ha="left", size=8)
    return figure, panels


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # Characters in names that the font lacks are drawn as boxes, without a warning.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _label(axes: Axes, text: str) -> None:
    """Label the y axis with `text`, and scale it linearly from 0 (a solved circuit) to 1, logarithmically above."""
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(-0.1, 2 * max(1.0, axes.dataLim.y1))
    axes.set_ylabel(text)
    axes.grid(True, alpha=0.3)


def colors(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return RGB colours `[..., 3]` of `bits` `[..., n]`: white for one channel, otherwise red, green and blue.

    With six channels, the last three are the low bits of red, green and blue.
    """
    if bits.shape[-1] == 1:
        return np.repeat(bits * np.uint8(255), 3, axis=-1)
    # Two bits per colour give four levels: 0, 85, 170 and 255.
    padded = np.zeros((*bits.shape[:-1], 6), dtype=np.uint8)
    padded[..., : min(6, bits.shape[-1])] = bits[..., :6]
    if bits.shape[-1] <= 3:
        return padded[..., :3] * np.uint8(255)
    return (2 * padded[..., :3] + padded[..., 3:]) * np.uint8(85)


def target_png(job: Job) -> bytes:
    """Return a PNG of the job's target or, for a rule, of a row of initial states above a row of their targets."""
    if job.target is not None:
        image = colors(job.target.astype(np.uint8))
    else:
        examples = np.linspace(0, len(job.probes) - 1, RULE_EXAMPLES).astype(int)
        starts = job.probes[examples, ..., : job.config.task.loss_channels]
        last = (job.probe_targets[-1, examples] > 0).astype(np.uint8)
        rows = [np.concatenate(list(_framed(grids)), axis=1) for grids in (starts, last)]
        image = np.concatenate(rows, axis=0)
    return picture_png(image)


def row_png(grids: Sequence[npt.NDArray[np.uint8]]) -> bytes:
    """Return a PNG of grids `[H, W, channels]` of equal height side by side, each with a frame."""
    return picture_png(np.concatenate([_framed(grid[None])[0] for grid in grids], axis=1))


def _framed(grids: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    border = ((0, 0), (1, 1), (1, 1), (0, 0))
    return np.pad(colors(grids), border, constant_values=GREY)


def picture_png(image: npt.NDArray[np.uint8]) -> bytes:
    """Return a PNG of RGB cells `[H, W, 3]`, each as a square with a side of CELL_PIXELS."""
    large = image.repeat(CELL_PIXELS, axis=0).repeat(CELL_PIXELS, axis=1)
    return film.file_of(Image.fromarray(large))


def gates_png(layers: Sequence[Layer], title: str) -> bytes:
    """Return a PNG of a shaded table with the number of gates per layer and function, and of unconverged gates."""
    counts = np.array([layer.kinds for layer in layers])
    figure = _figure(11, 1.8 + 0.3 * len(layers), 110)
    from matplotlib.colors import LogNorm

    axes = figure.subplots()
    axes.set_title(title, parse_math=False)
    shades = np.ma.masked_equal(counts, 0)
    axes.imshow(shades, cmap="YlGnBu", norm=LogNorm(1, max(2, counts.max())), aspect="auto")
    for row, column in zip(*np.nonzero(counts), strict=True):
        dark = math.log(counts[row, column]) > 0.6 * math.log(max(2, counts.max()))
        axes.text(column, row, str(counts[row, column]), ha="center", va="center", size=8, color="w" if dark else "k")
    axes.set_xticks(range(len(gates.NAMES)), gates.NAMES, rotation=35, ha="right", size=9)
    unconverged = [f", {layer.undecided} unconverged" if layer.undecided else "" for layer in layers]
    names = [f"{layer.name}: {layer.gates} gates{more}" for layer, more in zip(layers, unconverged, strict=True)]
    axes.set_yticks(range(len(layers)), names, size=9)
    return _png(figure)


def accuracy_png(curves: Sequence[tuple[str, Sequence[float], Sequence[float]]]) -> bytes:
    """Return a PNG with one panel per curve, which is (label of the x axis, x positions, accuracies from 0 to 1)."""
    figure = _figure(3.8 * len(curves), 2.8, 140)
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, (name, positions, accuracy) in zip(panels, curves, strict=True):
        axes.plot(positions, [100 * value for value in accuracy], marker="o", linewidth=1)
        axes.set_xlabel(name)
        axes.set_ylabel("right values, %")
        axes.grid(True, alpha=0.3)
    return _png(figure)


def errors_png(curves: Mapping[str, tuple[Sequence[float], int]]) -> bytes:
    """Return a PNG with wrong cells over CA steps; `curves` maps runs to (mismatches per step, number of values)."""
    figure, axes = _diagram(8, 4.5, "CA step", "wrong cells, %")
    for name, (wrong, values) in curves.items():
        axes.plot([100 * count / values for count in wrong], label=name, linewidth=1)
    axes.set_ylim(bottom=0)
    axes.legend()
    return _png(figure)


def curve_png(curve: Sequence[float], steps: Sequence[int], text: str) -> bytes:
    """Return a small PNG with the values of `curve` at the CA steps `steps`; `text` is the label of the y axis."""
    figure, axes = _diagram(3.8, 1.9, "CA step", text, dpi=140)
    axes.plot(steps, curve, linewidth=1)
    axes.set_ylim(bottom=0)
    return _png(figure)
