"""The files a run folder ends with: circuit.json, summary.txt, rollout.gif, loss.png."""

from collections.abc import Sequence

import numpy as np

from difflogic.config.own_task import FRESH, OwnTask
from difflogic.core import prng
from difflogic.engine import job as jobs
from difflogic.engine.api import Engine
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.runs import film, plots
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.folder import RunFolder
from difflogic.train.replica import Replica, member_of

SUMMARY = "summary.txt"
PICTURED = 4
"""Fresh samples that a task in Python draws its pictures of."""


def write(
    folder: RunFolder,
    engine: Engine,
    members: Sequence[Replica],
    best: ModelState,
    summary: str,
    wanted: bool = True,
) -> None:
    """All four, or without `wanted` pictures two; circuit and rollout are of the best model. Raises RunFolderError."""
    folder.write("circuit.json", netlist_json.to_json(CellNetlist.of_run(best.circuit, best.config)))
    folder.write(SUMMARY, summary)
    if wanted:
        for name, picture in pictures(engine, members, best).items():
            folder.write(name, picture)


def pictures(engine: Engine, members: Sequence[Replica], best: ModelState) -> dict[str, bytes]:
    """The pictures by file name: the film of the best model on its first probe, and the curves of all models."""
    member, circuit = member_of(members, best), best.circuit
    # A finished circuit has a configuration of its own.
    is_own = best.config.model != member.job.config.model
    job = jobs.make_job(best.config, circuit) if is_own else member.job
    damage = job.damage_of_probes(1)
    states = engine.rollout(circuit, job.probes[:1], job.config.task.steps, "hard", job.probe_masks, damage)
    visible = states[:, 0, ..., : job.config.task.loss_channels].astype(np.uint8)
    film_gif = film.animation(plots.colors(visible), "gif", neighbourhood=circuit.neighbourhood)
    config = member.job.config
    if len(members) == 1:
        curves = plots.loss_png(member.metrics, config, f"{config.name}, seed {member.seed}")
    else:
        title = f"{config.name}, seeds {members[0].seed} to {members[-1].seed}, the best: {member.seed}"
        curves = plots.population_png([each.metrics for each in members], members.index(member), config, title)
    return {"rollout.gif": film_gif, "loss.png": curves}


def draw(folder: RunFolder, engine: Engine, own: OwnTask, best: ModelState) -> None:
    """A task's own pictures of its best circuit, task-NAME.png. Raises FaultyTaskError, RunFolderError."""
    config, samples = best.config, own.drawn(PICTURED, FRESH, best.config.seed)
    grids = jobs.begun(config, samples, prng.key_from_seed(config.seed))
    states = engine.rollout(best.circuit, grids, samples.steps[-1], "hard", jobs.probe_masks(config))
    for name, picture in own.drawings(np.asarray(states).swapaxes(0, 1).astype(np.uint8), samples).items():
        folder.write(f"task-{name}.png", plots.picture_png(picture))
