"""Presets: the paper's values, and the names."""

import re
import tomllib

import numpy as np
import pytest

from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.config.text import commented
from difflogic.config.train import OptimizerConfig
from difflogic.core import text_picture
from difflogic.engine import job
from difflogic.errors import ConfigError

PAPER = {
    # name: (rows, columns, torus), (C, K), gates (perception, update), (T, batch, epochs), lr, start, loss channels
    "game-of-life": ((3, 3, True), (1, 16), (240, 2303), (1, 20, 3000), 0.05, "boards", 1),
    "checkerboard": ((16, 16, False), (8, 16), (224, 2816), (20, 2, 500), 0.05, "random", 1),
    "checkerboard-async": ((14, 14, False), (8, 16), (224, 3840), (50, 1, 800), 0.05, "random", 1),
    "lizard": ((20, 20, True), (128, 4), (60, 4480), (12, 1, 3500), 0.06, "seed", 1),
    "colored-g": ((16, 16, False), (64, 4), (56, 4544), (15, 1, 3000), 0.06, "zeros", 3),
}
EVALUATIONS = dict(zip(PAPER, (2543, 4608, 5632, 12160, 8128), strict=True))
"""Gates of a cell in one step: those of perception once per channel."""


@pytest.mark.parametrize("name", PAPER)
def test_preset_has_the_papers_values(name: str) -> None:
    config = presets.get(name)
    model, task, train, optimizer = config.model, config.task, config.train, config.optimizer
    perception = model.kernels * model.perceive.gates
    assert (
        (task.height, task.width, model.periodic),
        (model.channels, model.kernels),
        (perception, model.update.gates),
        (task.steps, train.batch, train.epochs),
        optimizer.lr,
        task.start,
        task.loss_channels,
    ) == PAPER[name]
    assert perception * model.channels + model.update.gates == EVALUATIONS[name]
    assert optimizer == OptimizerConfig(optimizer.lr, weight_decay=0.01, clip=100, beta1=0.9, beta2=0.99)
    assert config.seed == 23
    assert train.fire_rate == (0.6 if name == "checkerboard-async" else 1)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_preset_has_its_name_and_both_files(name: str) -> None:
    config = presets.get(name)
    assert config.name == name
    assert Config.from_toml(config.to_toml()) == config
    assert Config.from_toml(commented(config, "Words, and more words. " * 20)) == config


def test_images_have_as_many_ones_as_the_papers() -> None:
    assert text_picture.decode(presets.LIZARD, 1).sum() == 120
    assert text_picture.decode(presets.LETTER_G, 3).sum(axis=(0, 1)).tolist() == [46, 36, 27]


def test_preset_takes_a_custom_image() -> None:
    picture = ("1" * 20,) * 20
    target = job.target(presets.lizard(picture).task)
    assert np.array_equal(target, np.ones((20, 20, 1)))
    assert presets.colored_g(("7" * 16,) * 16).task.picture[0] == "7" * 16


def test_misspelled_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"^Unknown preset 'lizzard' \(did you mean lizard\?\): expected one of "):
        presets.get("lizzard")


def test_fields_without_defaults_are_explained_with_range_and_value() -> None:
    text = commented(presets.lizard(), "The lizard.")
    assert text.startswith("# The lizard.\n")
    comments: list[str] = []
    explained = {}
    for line in text.splitlines():
        if line.startswith("#"):
            comments.append(line.lstrip("# "))
        else:
            if match := re.match(r"(\w+) = ", line):
                explained[match[1]] = " ".join(comments)
            comments = []
    data = tomllib.loads(text)
    fields = [name for table in (data, data["model"]["update"], *data.values()) if isinstance(table, dict)
              for name, value in table.items() if not isinstance(value, dict)]  # fmt: skip
    assert [name for name in fields if not explained.get(name)] == []
    assert explained["lr"] == "Learning rate of AdamW (a number between 0 and 1e+30; preset: 0.06)."
    assert explained["epochs"].endswith("(an integer between 1 and 2147483648; preset: 3500).")
    assert "fire_rate" not in explained, "it is as it would be anyway"
    assert max(map(len, text.splitlines())) <= 120
