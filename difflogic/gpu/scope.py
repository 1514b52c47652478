"""What these kernels cannot do yet, refused before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence

from difflogic.config import Config
from difflogic.damage import Damage
from difflogic.errors import LimitError


def check_task(config: Config) -> None:
    """Raises LimitError where a configuration asks for more than the kernels do."""
    task = config.task
    asked = {
        f'the start "{task.start}"': task.start != "random",
        "a rule as target": task.target == "rule",
        "a loss before the last step": len(task.judged_steps) > 1,
        "damage": bool(task.damage_steps),
        "a sample pool": bool(config.train.pool),
    }
    _refuse([what for what, wanted in asked.items() if wanted])


def check_course(steps: int, loss_steps: Sequence[int], damage: Damage | None) -> None:
    """Raises LimitError where a rollout is more than the kernels do."""
    before = any(step != steps for step in loss_steps)
    _refuse(["a loss before the last step"] * before + ["damage"] * (damage is not None))


def _refuse(asked: Sequence[str]) -> None:
    if asked:
        raise LimitError(f"The GPU kernels do not know {' and '.join(asked)} yet: use --engine cpu.")
