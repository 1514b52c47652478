"""The files a run folder ends with: circuit.json, summary.txt, rollout.gif, loss.png."""

from __future__ import annotations

from difflogic.engine import Engine, Job, TrainState
from difflogic.netlist import Netlist
from difflogic.train import pictures
from difflogic.train.folder import RunFolder
from difflogic.train.journal import Row


def write(folder: RunFolder, job: Job, engine: Engine, state: TrainState, rows: list[Row], summary: str) -> None:
    """All four, the quick ones first. Raises RunFolderError."""
    circuit = job.circuit.with_logits(state.logits)
    folder.write("circuit.json", Netlist.from_circuit(circuit).to_json())
    folder.write("summary.txt", summary)
    states = engine.rollout(circuit, job.probes[:1], job.config.task.steps, "hard", job.probe_masks)
    folder.write("rollout.gif", pictures.rollout_gif(states[:, 0]))
    folder.write("loss.png", pictures.loss_png(rows, f"{job.config.name}, seed {job.config.seed}"))
