"""Diagrams of targets, losses and gates."""

import io
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from difflogic.config import presets, recipes
from difflogic.config.schema import Config
from difflogic.engine import job as tasks
from difflogic.engine.api import EpochMetrics, Evaluation
from difflogic.model.circuit import Circuit
from difflogic.model.statistics import census
from difflogic.runs import plots
from difflogic.runs.journal import Row
from tests.train import processes

DRAWS = """
import os, sys
from difflogic.runs import plots
plots._png(plots._figure(1, 1, 10))
import matplotlib
print(matplotlib.get_cachedir(), os.environ["MPLBACKEND"], matplotlib.rcParams["text.usetex"])
"""


def test_images_need_neither_the_backend_nor_the_home_of_the_environment(tmp_path, monkeypatch) -> None:
    """A command in a notebook inherits the kernel's backend, and a container's user may have no home.

    The settings in the current folder, which another user may have written, do not count either.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matplotlibrc").write_text("text.usetex: True")
    fonts = Path(os.environ["MPLCONFIGDIR"]).resolve()
    (tmp_path / "matplotlib").symlink_to(fonts)
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("MPLCONFIGDIR")
    monkeypatch.setenv("MPLBACKEND", "module://not_installed.backend_inline")
    done = processes.run_code(DRAWS)
    assert done.stderr == ""
    assert done.stdout.split() == [str(fonts), "module://not_installed.backend_inline", "False"]


def cells_of(config: Config) -> np.ndarray:
    """RGB of target.png, a pixel per cell."""
    job = tasks.make_job(config, Circuit.initial(config.model, config.seed))
    with Image.open(io.BytesIO(plots.target_png(job))) as picture:
        return np.asarray(picture)[::8, ::8]


@pytest.mark.parametrize(
    ("bits", "rgb"),
    [
        ([1], [255, 255, 255]),
        ([0, 1], [0, 255, 0]),
        ([1, 0, 1], [255, 0, 255]),
        ([1, 0, 1, 0, 1, 1], [170, 85, 255]),
        ([1, 0, 0, 0, 0, 0, 1, 1], [170, 0, 0]),
    ],
)
def test_colours(bits: list[int], rgb: list[int]) -> None:
    assert plots.colors(np.array(bits, dtype=np.uint8)).tolist() == rgb


def test_a_picture_in_its_colours() -> None:
    cells = cells_of(presets.colored_g())
    assert cells[1, 5].tolist() == [255, 0, 0]
    assert cells[7, 2].tolist() == [255, 255, 0]
    assert cells[:, :, 2].sum() == 27 * 255


def test_a_rule_is_shown_by_boards_and_what_becomes_of_them() -> None:
    """Each has a grey border; the first board is empty, the last is full, where nothing survives."""
    cells = cells_of(presets.game_of_life())[..., 0]
    assert cells.shape == (2 * 5, 8 * 5)
    boards = cells.reshape(2, 5, 8, 5).transpose(0, 2, 1, 3)
    assert (boards[:, :, 0] == 128).all()
    inside = boards[:, :, 1:4, 1:4]
    assert not inside[:, 0].any()
    assert (inside[0, 7] == 255).all()
    assert not inside[1, 7].any()
    assert inside[0, 3].sum() == 255 * (511 * 3 // 7).bit_count()


def rows_of(epochs: int) -> list[Row]:
    rows = [Row.of(EpochMetrics(epoch, 9.0), 0) for epoch in range(1, epochs + 1)]
    rows[-1] = rows[-1].evaluated(Evaluation(3, 4, 64, 1), 3, 5)
    return rows


def marked(figure: Any) -> tuple[list[float], list[str]]:
    """Return the epochs of the lines in each panel of a loss diagram, and the labels above them."""
    lines = [[line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"] for axes in figure.axes]
    assert all(each == lines[0] for each in lines)
    assert len({axes.get_ylabel() for axes in figure.axes}) == len(figure.axes)
    return lines[0], [label.get_text() for top in figure.axes[0].child_axes for label in top.get_xticklabels()]


def test_losses_say_where_the_grid_grows_and_a_search_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "_png", lambda figure: figure)
    grows = recipes.applied("robust", presets.checkerboard(small=True))
    ends = recipes.applied("robust", presets.lizard())
    for epochs, config, expected in (
        (300, grows, ([0, 200], ["8x8, 9 steps", "16x16, 20 steps"])),
        (200, grows, ([0], ["8x8, 9 steps"])),
        (2500, ends, ([105], ["search"])),
        (200, presets.lizard(), ([], [])),
    ):
        rows = rows_of(epochs)
        assert marked(plots.loss_png(rows, config, "one")) == expected
        assert marked(plots.population_png([rows, rows], 1, config, "many")) == expected


@pytest.mark.exhaustive
@pytest.mark.usefixtures("painted")
def test_every_diagram_is_painted_whatever_the_name() -> None:
    """No formula, and no warning where a font lacks a letter, nor where a loss is missing or not finite."""
    name = "5$ {x_$ 🦎 蜥蜴"
    config = recipes.applied("robust", presets.lizard())
    layers = census(Circuit.initial(config.model, config.seed))
    many = rows_of(800)
    odd = [replace(row, soft_loss=[math.nan, math.inf, 2.0][row.epoch % 3]) for row in rows_of(3)]
    rows = [{"steps": 10, "mean_return": None, "score": None}, {"steps": 20, "mean_return": 1.0, "score": 3.0}]
    for data in (
        *(plots.loss_png(rows, config, name) for rows in (many, odd, many[:1])),
        *(plots.population_png([rows, odd], 1, config, name) for rows in (many, odd[:1])),
        plots.gates_png(layers, name),
        *(plots.returns_png({1: rows, 2: rows[:1]}, 1, solved, name) for solved in (2.5, math.inf)),
        plots.accuracy_png([("share", [0.0, 0.5], [1.0, 0.25]), ("steps", [1.0], [0.5])]),
        plots.curve_png([4.0, 0.0], [0, 5], "wrong values"),
    ):
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.format == "PNG"
            assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 10, "lines and letters"
