"""Distributions that offer tasks in Python, as if they were installed."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples" / "tasks"

PLAIN = '''
from dataclasses import dataclass
import numpy as np
from difflogic import Dataset, Task, circuit, setting

@dataclass(frozen=True)
class Fill(Task):
    """Every row becomes what its first cell is."""

    version = "1"
    side: int = setting(4, "Cells a side", least=3, most=8)
    word: str = setting("left", "From where", among=("left", "right"))

    def fields(self):
        return {"model": circuit(2, kernels=1, hidden=(8,)), "train": {"epochs": 4, "batch": 2, "eval_interval": 2},
                "data": {"samples": 12}}

    def samples(self, rng, count):
        x = rng.integers(0, 2, (count, self.side, self.side, 1))
        return Dataset.of(x, np.repeat(x[:, :, :1], self.side, axis=2), steps=2)

    def judge(self, states, samples):
        return {"share of ones": states.mean(), "samples": len(samples)}

    def pictures(self, film, samples):
        return {"first": np.repeat(255 * film[0, 0, ..., :1], 3, axis=-1)}
'''


def install(patch: pytest.MonkeyPatch, folder: Path, name: str, modules: Mapping[str, str], **tasks: str) -> None:
    """A distribution of these modules, whose `tasks` are `name="module:Class"`."""
    information = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    entries = [f"{task} = {where}" for task, where in tasks.items()]
    (information / "entry_points.txt").write_text("\n".join(["[difflogic.tasks]", *entries, ""]))
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    patch.syspath_prepend(str(folder))
    # Children of a test find them too.
    patch.setenv("PYTHONPATH", str(folder), prepend=":")


def install_examples(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The tasks in examples/tasks, under the names that its pyproject.toml gives them."""
    project = tomllib.loads((EXAMPLES / "pyproject.toml").read_text())["project"]
    install(patch, folder, project["name"], {}, **project["entry-points"]["difflogic.tasks"])
    patch.syspath_prepend(str(EXAMPLES))
    patch.setenv("PYTHONPATH", str(EXAMPLES), prepend=":")
