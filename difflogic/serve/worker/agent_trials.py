"""One try at a trial that trains agents: see `difflogic.serve.worker.trials`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.policies.rows import PolicyRow
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.agents import AgentObserver
from difflogic.serve.worker.lease import Lease
from difflogic.serve.worker.training import TrainingOutcome
from difflogic.serve.worker.trials import TrialStop, told
from difflogic.sweeps import agents
from difflogic.sweeps.trial import Outcome


class AgentTrialObserver(AgentObserver):
    """The observer of a trial of agents."""

    def __init__(self, lease: Lease, stopping: Callable[[], bool]) -> None:
        super().__init__(lease, stopping)
        self.stop_here = TrialStop(self, lease.job)

    def iterated(self, rows: list[PolicyRow]) -> None:
        super().iterated(rows)
        if rows[0].score is not None:
            self.stop_here.evaluated(rows[0].steps)


def train(store: Store, job: JobRecord, device: Device, observer: AgentTrialObserver) -> TrainingOutcome:
    """Train a trial in its folder, from where it is. Raises what `PolicyTrainer` raises."""
    config = PolicyConfig.from_dict(job.config or {})

    def train_once(path: Path) -> Outcome:
        return agents.train(config, job.asked, path, device, observer, observer.stop_here)

    return told(store, job, observer, train_once)
