"""`difflogic build`: circuits without training, tested on what they were made from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from difflogic.core import rules
from tests.cli.conftest import Call


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("B36/S23", "It is made from the table of the rule."),
        ("game-of-life", "It is made from the table of the rule."),
        ("film.npy", "It is right on all 7 pairs of states."),
        ("cat.png", "It shows the image after 12 steps."),
        ("lizard", "It shows the image after 12 steps."),
        ("run", "It shows the image after 12 steps."),
    ],
)
def test_build_makes_a_circuit_of_what_it_is_given(what: str, words: str, difflogic: Call) -> None:
    states = [np.random.default_rng(1).integers(0, 2, (32, 32), np.uint8)]
    for _ in range(7):
        states.append(rules.apply(rules.table("B36/S23"), states[-1], periodic=True))
    np.save("film.npy", states)
    Image.fromarray(255 * states[0][:12, :12]).save("cat.png")
    if what == "run":
        assert difflogic("train", "lizard", "--epochs", 1, "--restarts", 0, "--engine", "cpu", "-o", what).code == 0
    done = difflogic("build", what, "-o", "made.json")
    assert (done.code, done.errors) == (0, "")
    assert words in done.out
    assert json.loads(Path("made.json").read_text())["format"]
    assert difflogic("show", "made.json").code == 0


def test_train_on_a_recording_names_the_build_command_first(difflogic: Call) -> None:
    np.save("film.npy", np.random.default_rng(1).integers(0, 2, (1, 8, 8)).repeat(4, axis=0))
    done = difflogic("train", "--from-film", "film.npy", "--epochs", 1, "--restarts", 0, "--engine", "cpu")
    assert "Without training, difflogic build film.npy finds their rule" in done.out.splitlines()[0]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("checkerboard", "No circuit is built without training for the task of checkerboard"),
        ("heart-persistent", "No circuit is built without training for the task of heart-persistent"),
        ("nothing.png", "nothing.png"),
    ],
)
def test_build_refuses_what_it_cannot_make(what: str, words: str, difflogic: Call) -> None:
    done = difflogic("build", what)
    assert (done.code, done.errors.count("\n")) == (2, 1)
    assert words in done.errors
