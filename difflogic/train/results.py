"""Result files of a run of automata: circuit.json, summary.txt, rollout.gif, loss.png."""

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
DRAWN_SAMPLES = 4
"""Number of fresh samples from which a custom task draws its images."""


def write(
    folder: RunFolder, engine: Engine, members: Sequence[Replica], best: ModelState, summary: str, has_images: bool
) -> None:
    """Write the circuit of the best model and the summary, and the images if `has_images`. Raises RunFolderError."""
    folder.write("circuit.json", netlist_json.to_json(CellNetlist.of_run(best.circuit, best.config)))
    folder.write(SUMMARY, summary)
    for name, image in images(engine, members, best).items() if has_images else ():
        folder.write(name, image)


def images(engine: Engine, members: Sequence[Replica], best: ModelState) -> dict[str, bytes]:
    """Return images by file name: a rollout of the best model from its first evaluation grid, and all loss curves."""
    member, circuit = member_of(members, best), best.circuit
    # A circuit that finishing passes changed has a separate configuration.
    is_own = best.config.model != member.job.config.model
    job = jobs.make_job(best.config, circuit) if is_own else member.job
    steps, damage = job.config.task.steps, job.damage_of_probes(1)
    states = engine.rollout(circuit, job.probes[:1], steps, "hard", job.probe_masks, damage)
    visible = states[:, 0, ..., : job.config.task.loss_channels].astype(np.uint8)
    recording = film.animation(plots.colors(visible), "gif", neighbourhood=circuit.neighbourhood)
    config = member.job.config
    if len(members) == 1:
        curves = plots.loss_png(member.metrics, config, f"{config.name}, seed {member.seed}")
    else:
        title = f"{config.name}, seeds {members[0].seed} to {members[-1].seed}, the best: {member.seed}"
        curves = plots.population_png([each.metrics for each in members], members.index(member), config, title)
    return {"rollout.gif": recording, "loss.png": curves}


def draw(folder: RunFolder, engine: Engine, own: OwnTask, best: ModelState) -> None:
    """Write a custom task's images of `best` to files task-NAME.png. Raises FaultyTaskError or RunFolderError."""
    config, samples = best.config, own.drawn(DRAWN_SAMPLES, FRESH, best.config.seed)
    grids = jobs.begun(config, samples, prng.key_from_seed(config.seed))
    states = engine.rollout(best.circuit, grids, samples.steps[-1], "hard", jobs.probe_masks(config))
    for name, image in own.drawings(np.asarray(states).swapaxes(0, 1).astype(np.uint8), samples).items():
        folder.write(f"task-{name}.png", plots.picture_png(image))
