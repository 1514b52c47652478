"""`difflogic presets`."""

from __future__ import annotations

import json
from typing import Any

import click

from difflogic.cli.options import json_option
from difflogic.cli.screen import table


@click.command("presets")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the presets with their sizes and cost, or show one in full.

    Evaluations are gate evaluations of one train step, forward: gates, times cells, CA steps and samples. Cost is
    that of all epochs, in times that of the checkerboard. Of one preset the recipes are told too, which `difflogic
    train --recipe` takes: robust begins again where training stalls, as often as is of use.

    Example: difflogic presets lizard
    """
    from difflogic.config import presets

    # What is printed of a preset is computed from its configuration, so that the table is never out of date.
    if name is not None:
        config = presets.get(name)
        click.echo(json.dumps(_row(name) | {"config": config.to_dict()}) if as_json else _shown(name))
    elif as_json:
        click.echo("\n".join(json.dumps(_row(each)) for each in presets.PRESETS))
    else:
        table.show(HEADERS, [_cells(_row(each)) for each in presets.PRESETS])


SIZES = ("channels", "kernels", "gates", "steps", "batch", "epochs")
HEADERS = ("preset", "what it learns", "grid", *SIZES, "evaluations", "cost")


def _row(name: str) -> dict[str, Any]:
    """A preset in numbers, by HEADERS and as JSON."""
    from difflogic.config import presets

    config = presets.get(name)
    model, task, train = config.model, config.task, config.train
    return {
        "preset": name,
        "about": presets.PRESETS[name].about,
        "height": task.height,
        "width": task.width,
        "periodic": model.periodic,
        "channels": model.channels,
        "kernels": model.kernels,
        "gates": model.gates,
        "steps": task.steps,
        "batch": train.batch,
        "epochs": train.epochs,
        "gate_evaluations_per_epoch": _evaluations(name),
        # In units of the checkerboard's, whose time a newcomer soon knows.
        "cost": round(_cost(name) / _cost("checkerboard"), 3),
        "recipes": _recipes(name),
    }


def _recipes(name: str) -> dict[str, int]:
    """The recipes of a preset, each with the restarts that it makes at most."""
    from difflogic.config import presets, recipes
    from difflogic.config.choices import RECIPES
    from difflogic.config.request import TrainRequest
    from difflogic.train import run_request

    config, found = presets.get(name), {}
    for each in RECIPES if name in recipes.ROBUST else RECIPES[:1]:
        request, _ = run_request.resolved(TrainRequest(name, recipe=each), recipes.applied(each, config))
        found[each] = request.restarts or 0
    return found


def _evaluations(name: str) -> int:
    from difflogic.bench.work import work_of
    from difflogic.config import presets

    return work_of(presets.get(name)).soft_evaluations


def _cost(name: str) -> int:
    from difflogic.config import presets

    return _evaluations(name) * presets.get(name).train.epochs


def _cells(row: dict[str, Any]) -> list[str]:
    grid = f"{row['height']}x{row['width']}{' torus' if row['periodic'] else ''}"
    numbers = [str(row[name]) for name in SIZES]
    evaluations = f"{row['gate_evaluations_per_epoch'] / 1e6:.3g} M"
    return [row["preset"], row["about"], grid, *numbers, evaluations, f"{row['cost']:.3g}"]


def _shown(name: str) -> str:
    from difflogic.config import presets

    row = _row(name)
    recipes = [f"{each}, up to {most} restarts" if most else each for each, most in row["recipes"].items()]
    rows = [*zip(HEADERS, _cells(row), strict=True), ("recipes", "; ".join(recipes))]
    lines = [f"{header:<14}  {text}" for header, text in rows]
    return "\n".join([*lines, "", presets.get(name).to_toml().rstrip()])
