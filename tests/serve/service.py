"""Jobs of tests, and how to wait for them; the rest is that of the service's benchmark."""

from pathlib import Path
from typing import Any

from benchmarks.service.jobs import PATIENCE_S, by_hand, ended, spec_of, wait
from difflogic.config.schema import Config
from difflogic.serve.store.store import Store
from tests.train.tiny import tiny_config

__all__ = ["EPOCHS", "PATIENCE_S", "by_hand", "ended", "held", "reached", "short_config", "spec_of", "wait"]

EPOCHS = 600


def short_config(epochs: int = EPOCHS, **fields: Any) -> Config:
    """Less than a second of training, saved 13 times."""
    return tiny_config(epochs=epochs, eval_interval=50, **fields)


def reached(store: Store, job: str, epoch: int, attempt: int = 0) -> None:
    """Wait until the job has trained up to `epoch`, with restarts that of an attempt."""

    def there() -> bool:
        now = store.job(job)
        return (now.attempt, now.progress) >= (attempt, epoch)

    wait(there, f"job {job} to reach epoch {epoch} of attempt {attempt}: {store.job(job)}")


def held(store: Store, config: Config, epoch: int, **fields: Any) -> str:
    """A job that an acting worker holds at an epoch, until something is asked of it or the worker is ended."""
    job = store.submit("ann", spec_of(config, name=f"hold {epoch}", **fields))[0].id
    reached(store, job, epoch)
    return job


def is_alive(pid: int) -> bool:
    """A process that ended but was not waited for, by a parent that is gone, does not count."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
