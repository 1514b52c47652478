"""The files a run folder ends with: circuit.json, summary.txt, rollout.gif, loss.png."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from difflogic import netlist_json
from difflogic.engine import Engine
from difflogic.netlist import Netlist
from difflogic.train import film, pictures
from difflogic.train.folder import RunFolder
from difflogic.train.member import Member


def write(folder: RunFolder, engine: Engine, members: Sequence[Member], leader: int, summary: str) -> None:
    """All four, the quick ones first; circuit and rollout are the leader's. Raises RunFolderError."""
    best = members[leader]
    job, circuit = best.job, best.circuit
    folder.write("circuit.json", netlist_json.to_json(Netlist.of_run(circuit, job.config)))
    folder.write("summary.txt", summary)
    damage = job.damage_of_probes(1)
    states = engine.rollout(circuit, job.probes[:1], job.config.task.steps, "hard", job.probe_masks, damage)
    visible = states[:, 0, ..., : job.config.task.loss_channels].astype(np.uint8)
    folder.write("rollout.gif", film.animation(pictures.colors(visible), "gif"))
    if len(members) == 1:
        folder.write("loss.png", pictures.loss_png(best.metrics, f"{job.config.name}, seed {best.seed}"))
        return
    title = f"{job.config.name}, seeds {members[0].seed} to {members[-1].seed}, the best: {best.seed}"
    folder.write("loss.png", pictures.population_png([each.metrics for each in members], leader, title))
