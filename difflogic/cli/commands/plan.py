"""`difflogic plan`: what a training run would need from a GPU, before anything is allocated."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import grid_size, json_document_option, megabytes, precision_option, work_options
from difflogic.cli.request import work

if TYPE_CHECKING:
    from difflogic.config.schema import Config
    from difflogic.engine.job import Job
    from difflogic.gpu.device import Device
    from difflogic.gpu.plan import Plan


@click.command("plan")
@work_options
@click.option("--adapter", metavar="INDEX|NAME", help="Plan for this adapter (default: the first).")
@click.option(
    "--size", type=grid_size, metavar="WIDTHxHEIGHT", help="Use another grid, for example 256x256 [the preset's]."
)
@click.option("--population", type=int, default=1, show_default=True, help="Models trained at once.")
@precision_option
@click.option("--max-memory", type=megabytes, metavar="MB", help="The most device memory that training may use.")
@json_document_option
def command(
    adapter: str | None,
    size: tuple[int, int] | None,
    population: int,
    precision: str | None,
    max_memory: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Print the device memory that training would take, by strategy, and which is chosen.

    PRESET is a name that `difflogic presets` lists [checkerboard]. Nothing is trained. A strategy is `kept` if the
    forward pass keeps every gate's value for the backward pass. It is `recomputed` if only the states are kept, or
    every 2nd, 3rd, ... state, and each step is computed again in a buffer of fixed size. The results are the same.
    If a population is too large for one binding, it is trained in groups, one after another.

    Example: difflogic plan lizard --population 8
    """
    from difflogic.gpu.adapter import select_adapter
    from difflogic.gpu.device import Device

    config = work(options)
    if precision is not None:
        config = config.with_(train={"precision": precision})
    if size is not None:
        config = _on_grid(config, *size)
    device = Device(select_adapter(adapter))
    groups, plans = _plans(device, config, population, max_memory)
    rows = [_row(plan, chosen, groups) for plan, chosen in plans]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        click.echo("\n".join(map(_line, rows)))


def _on_grid(config: Config, height: int, width: int) -> Config:
    """A picture lies in the middle of a larger grid; there is none of all boards. Raises ConfigError."""
    from difflogic.evaluation.rehearsal import resized

    # What lies in the picture keeps its size, and gets a border.
    if config.task.picture or config.task.start_picture or config.task.start == "boards":
        return resized(config, height, width)
    return config.with_(task={"height": height, "width": width})


def _plans(
    device: Device, config: Config, population: int, max_memory: int | None
) -> tuple[int, list[tuple[Plan, bool]]]:
    """The number of groups, and for the largest of them each strategy, and whether it would be taken.

    Raises LimitError where nothing that may be allocated holds the work.
    """
    from difflogic.engine.population import configs
    from difflogic.gpu.planner import Budget, checkpoint_distances, plan_in_groups

    jobs = [_sizes(member) for member in configs(config, population)]
    groups, chosen = plan_in_groups(device, jobs, budget=Budget(max_memory))
    # Every activation is kept; or only the state of every n-th step, from which the others are computed again.
    memories = [(True, 1), *((False, spacing) for spacing in checkpoint_distances(config.task.steps))]
    plans = [replace(chosen, launch=chosen.launch.with_memory(*memory)) for memory in memories]
    return groups, [(plan, plan.launch == chosen.launch) for plan in plans]


def _sizes(config: Config) -> Job:
    """A job whose grids take no memory, however large they are: only their shapes count here."""
    import numpy as np

    from difflogic.config.dataset import Dataset
    from difflogic.core import rules
    from difflogic.engine import job
    from difflogic.engine.job import Job
    from difflogic.model.circuit import Circuit

    task = config.task
    # `broadcast_to` makes an array of any shape out of one number, without memory for the rest.
    sides = (task.height, task.width)
    rule = rules.table(task.rule) if task.target == "rule" else None
    wanted = np.broadcast_to(np.float32(0), (*sides, task.loss_channels)) if task.is_fixed else None
    samples = None
    if task.target == "data":
        x = np.broadcast_to(np.uint8(0), (config.data.samples, *sides, config.data.channels))
        y = np.broadcast_to(np.int8(0), (config.data.samples, config.data.targets, *sides, task.loss_channels))
        samples = Dataset(x, y, task.judged_steps)
    count = job.probe_count(config)
    return Job(
        config,
        Circuit.initial(config.model, config.seed),
        wanted,
        probes=np.broadcast_to(np.uint8(0), (count, *sides, config.model.channels)),
        probe_masks=np.broadcast_to(np.float32(0), (task.steps, *sides, 1)) if config.train.asynchronous else None,
        rule=rule,
        data=samples,
        probe_damage=np.zeros((len(task.damage_steps), count, 2), dtype=np.int64) if task.damage_steps else None,
    )


def _row(plan: Plan, chosen: bool, groups: int) -> dict[str, Any]:
    counts = plan.buffer_counts()
    return {
        "strategy": "kept" if plan.launch.store_activations else "recomputed",
        "states_apart": plan.launch.checkpoint_every,
        "chosen": chosen,
        "groups": groups,
        "models_per_group": plan.models,
        "total_bytes": plan.total_bytes(),
        "buffers": {name: size * counts.get(name, 1) for name, size in plan.buffer_bytes().items()},
    }


def _line(row: dict[str, Any]) -> str:
    largest = sorted(row["buffers"].items(), key=lambda item: -item[1])[:4]
    parts = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in largest)
    mark = "chosen" if row["chosen"] else "      "
    each = f" for each of {row['groups']} groups of {row['models_per_group']}" if row["groups"] > 1 else ""
    name = row["strategy"] + (f"/{row['states_apart']}" if row["states_apart"] > 1 else "")
    return f"{name:12} {mark}  {row['total_bytes'] / 1e6:9.1f} MB{each}   ({parts}, ...)"
