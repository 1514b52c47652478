"""`difflogic presets`: list the presets, or show one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import json_option, recipe_option
from difflogic.cli.screen import table
from difflogic.cli.screen.echo import echo
from difflogic.config.choices import RECIPES
from difflogic.config.request import TrainRequest
from difflogic.errors import DifflogicError

if TYPE_CHECKING:
    from difflogic.config.document import Document
    from difflogic.config.schema import Config


@click.command("presets")
@click.argument("name", required=False)
@recipe_option
@json_option
def command(name: str | None, recipe: str | None, as_json: bool) -> None:
    """List the presets, tasks in Python and agents with their sizes and cost, or show one preset in full.

    The list shows each preset with the paper's training, and NAME shows it with its recipe. The column `evaluations`
    counts gate evaluations in the forward pass of one train step: gates times cells, steps and samples. `cost` is that
    of all epochs, relative to the checkerboard. With NAME the command also prints the recipes, and the number of
    restarts that `robust` makes at most when training stalls.

    Example: difflogic presets lizard
    """
    from difflogic.config import agent_presets, presets, registered
    from difflogic.config.customise import configure

    # The table is computed from the configurations, so it is always up to date.
    if name in agent_presets.PRESETS:
        config: Document = agent_presets.PRESETS[name]
        lines = [f"{TITLES.get(header, header):<14}  {text}" for header, text in _agents(name).items()]
        text = "\n".join([*lines, "", config.to_toml().rstrip()])
        echo(json.dumps(_agents(name) | {"config": config.to_dict()}) if as_json else text)
    elif name is not None:
        config = configure(TrainRequest(name, recipe=recipe)).config
        about = registered.find(name).about if registered.is_task(name) else presets.PRESETS[name].about
        row = _row(name, about, config)
        echo(json.dumps(row | {"config": config.to_dict()}) if as_json else _shown(row, config))
    else:
        rows = [_row(preset_name, preset.about, preset.make()) for preset_name, preset in presets.PRESETS.items()]
        _list(rows + _of_tasks(), as_json)


def _list(rows: list[dict[str, Any]], as_json: bool) -> None:
    from difflogic.config import agent_presets

    agents = [_agents(name) for name in agent_presets.PRESETS]
    if as_json:
        echo("\n".join(map(json.dumps, rows + agents)))
        return
    table.show(HEADERS, [_cells(row) for row in rows])
    echo()
    headers = [TITLES.get(name, name) for name in OF_AGENTS]
    table.show(headers, [[str(value) for value in row.values()] for row in agents])


OF_AGENTS = ("preset", "environment", "algorithm", "steps", "gates", "solved_from")
SIZES = ("channels", "kernels", "gates", "steps", "batch", "epochs")
TITLES = {"gates": "soft gates"}
"""Mapping from fields to column titles that differ from their names; gates are counted before training."""
HEADERS = ("preset", "what it learns", "grid", *(TITLES.get(name, name) for name in SIZES), "evaluations", "cost")


def _agents(name: str) -> dict[str, Any]:
    from difflogic.config.agent_presets import PRESETS

    config = PRESETS[name]
    values = (name, config.environment.id, config.algorithm, config.steps, config.gate_count)
    return dict(zip(OF_AGENTS, (*values, config.evaluation.threshold), strict=True))


def _of_tasks() -> list[dict[str, Any]]:
    """Return a table row for each usable task in Python, and report the other tasks on standard error."""
    from difflogic.config import registered
    from difflogic.config.own_task import FEW

    rows = []
    for name in registered.names():
        try:
            task = registered.find(name)
            rows.append(_row(name, task.about, task.config(FEW)))
        except DifflogicError as error:
            echo(f"Skipped: {error}", err=True)
    return rows


def _row(name: str, about: str, config: Config) -> dict[str, Any]:
    from difflogic.bench.work import work_of
    from difflogic.config import presets

    board, model, task, train = presets.get("checkerboard"), config.model, config.task, config.train
    grid: dict[str, Any] = {"height": task.height, "width": task.width, "periodic": model.periodic}
    sizes: dict[str, Any] = {"channels": model.channels, "kernels": model.kernels, "gates": model.gates}
    sizes |= {"steps": task.steps, "batch": train.batch}
    evaluations, of_board = work_of(config).soft_evaluations, work_of(board).soft_evaluations * board.train.epochs
    costs: dict[str, Any] = {"epochs": train.epochs, "gate_evaluations_per_epoch": evaluations}
    costs |= {"cost": round(evaluations * train.epochs / of_board, 3)}
    return {"preset": name, "about": about, **grid, **sizes, **costs, "recipes": _recipes(name, config)}


def _recipes(name: str, config: Config) -> dict[str, int]:
    """Return the maximum number of restarts of a preset with each recipe."""
    from difflogic.config import recipes
    from difflogic.train import run_request

    restarts = {}
    for recipe in RECIPES:
        request, _ = run_request.resolved(TrainRequest(name, recipe=recipe), recipes.applied(recipe, config))
        restarts[recipe] = request.restarts or 0
    return restarts


def _cells(row: dict[str, Any]) -> list[str]:
    grid = f"{row['width']}x{row['height']}{' torus' if row['periodic'] else ''}"
    numbers = [str(row[name]) for name in SIZES]
    evaluations = f"{row['gate_evaluations_per_epoch'] / 1e6:.3g} M"
    return [row["preset"], row["about"], grid, *numbers, evaluations, f"{row['cost']:.3g}"]


def _shown(row: dict[str, Any], config: Config) -> str:
    recipes = [f"{recipe}, up to {most} restarts" if most else recipe for recipe, most in row["recipes"].items()]
    rows = [*zip(HEADERS, _cells(row), strict=True), ("recipes", "; ".join(recipes))]
    lines = [f"{header:<14}  {text}" for header, text in rows]
    return "\n".join([*lines, "", config.to_toml().rstrip()])
