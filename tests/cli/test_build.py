"""`difflogic build`: circuits without training, simplified, and proved or tested on what they were made from."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from difflogic.circuits.readers.source import load
from difflogic.core import rules
from tests.cli.conftest import Call
from tests.sampled import exhaustive


@pytest.fixture
def inputs(difflogic: Call) -> Path:
    """A folder with a recording of B36/S23, a pattern, and an image of 6x5 cells."""
    states = [np.random.default_rng(1).integers(0, 2, (32, 32), np.uint8)]
    for _ in range(7):
        states.append(rules.apply(rules.table("B36/S23"), states[-1], periodic=True))
    np.save("film.npy", states)
    texts = {"t.txt": "01" * 256, "z.txt": "01", "r.cells": "!Name: R-pentomino\n.OO\nOO.\n.O.\n"}
    texts |= {"p.rle": "x = 1, y = 1, rule = B2/S/C3:P30,20\no!"}
    texts |= {"two words.rule": "@TABLE\nn_states:3\nneighborhood:vonNeumann\nsymmetries:none\n0,1,0,0,0,2\n"}
    texts |= {"Two.rule": texts["two words.rule"].replace("s:3", "s:2").replace(",2", ",1")}
    for name, text in texts.items():
        Path(name).write_text(text)
    Image.fromarray(255 * np.tri(5, 6, dtype=np.uint8)).save("cat.png")
    return Path()


@pytest.mark.parametrize(
    ("what", "title", "words"),
    [
        ("B36/S23", "B36/S23: 2", "each step is one generation of B36/S23."),
        ("film.npy", "film: 2", "It has 0 wrong cells in all 7 pairs of states."),
        ("t.txt", "t: 0 gates per cell", "is one generation of 5555"),
        *exhaustive(
            ("film.npy --frames 2", "film: ", "There is only one pair of states, so none is held out"),
            ("game-of-life", "game-of-life: 24 gates per cell", "is one generation of B3/S23."),
            ("r.cells --film-rule B3/S23 --size 24x20", "r: 24 gates", "is one generation of B3/S23."),
            ("cat.png --padding 12", "cat: ", "the image is right at step 17, and stays for ever"),
            ("cat.png --start seed", "cat: ", "the image is right at step 5, and stays for ever"),
            ("cat.png --colors 8 --size 4x4 --invert", "cat: ", "image is right at step 4, and stays for ever"),
        ),
    ],
)
@pytest.mark.usefixtures("inputs")
def test_build_proves_the_circuit_of_its_target(what: str, title: str, words: str, difflogic: Call) -> None:
    done = difflogic("build", *what.split(), "-o", "made.json")
    assert (done.code, done.out.startswith(title), words in done.out) == (0, True, True), done
    assert "Proved equal in its visible channels" in done.out


@pytest.mark.parametrize("what", ["cat.png", *exhaustive(("W110",), ("film.npy",))])
def test_commands_read_a_built_folder(what: str, difflogic: Call, inputs: Path) -> None:
    assert difflogic("build", what, "-o", "built").code == 0
    for command in ("show", "simplify", "export --format c", "render -o film.gif", "evaluate --quick", "simulate"):
        done = difflogic(*command.split(), "built")
        assert done.code == 0, done.errors
        assert command == "show" or "built: the circuit, built without training." in done.errors
    assert "Built without training." in difflogic("show", "built").out
    assert difflogic("prove", "built", "built/circuit.json").code == 0
    if what != "film.npy":  # what samples become is proved of complete rollouts
        assert difflogic("prove", "built").code == difflogic("prove", "built/circuit.json").code == 0
    assert "choose another --out" in difflogic("build", what, "-o", "built").errors


@pytest.mark.parametrize(
    ("what", "rule", "grid"),
    [
        ("B2/S/C3:P30,20", "B2/S/C3", "30x20 cells, 0 outside"),
        ("two words.rule", "two words", "256x256 cells, wrapped"),
        *exhaustive(
            ("B3/S23:P30,20", "B3/S23", "30x20 cells, 0 outside"),
            ("Two:T30,20", "Two", "30x20 cells, wrapped"),
            ("p.rle", "B2/S/C3", "30x20 cells, 0 outside"),  # without a cell in state 2
        ),
    ],
)
def test_built_rule_is_proved_and_simulated_on_its_grid(what, rule, grid, difflogic: Call, inputs: Path) -> None:
    texts = [difflogic("build", what, "-o", "built").out]
    for name in inputs.glob("*.rule"):
        name.unlink()
    texts += [difflogic("prove", "built").out, difflogic("prove", "--check", "built/proof.json").out]
    texts += [difflogic("build", "built", "-o", "again").out]
    assert all(f"on every grid, each step is one generation of {rule}.\n" in text for text in texts), texts
    assert grid in difflogic("simulate", "built", "--steps", 1).out
    assert load("built").netlist.colours == load("built/circuit.json").netlist.colours
    noise = [each["title"] for each in json.loads(difflogic("evaluate", "built", "--quick", "--json").out)["measures"]]
    assert what != "B3/S23:P30,20" or "30x20 cells of noise, after 10 generations" in noise


def test_held_out_pairs_test_an_induced_rule(difflogic: Call, inputs: Path) -> None:
    report = json.loads(difflogic("build", "film.npy", "--json").out)
    assert (report["pairs"], report["wrong"], report["held_out"]) == (7, 0, {"pairs": 1, "wrong": 0})


def test_circuit_built_from_a_loops_recording_equals_the_zoos(difflogic: Call) -> None:
    loop = load("chou-reggia-loop").netlist
    assert loop.scenario is not None
    start = loop.scenario.grid(loop.origin)
    assert start is not None
    np.save("film.npy", loop.rollout(start, 60))
    done = difflogic("build", "film.npy", "-o", "made.json")
    assert (done.code, "but chou-reggia-loop of the zoo does." in done.out) == (0, True), done
    assert "It has 0 wrong cells in all 60 pairs of states." in done.out
    assert difflogic("prove", "made.json", "chou-reggia-loop", "--judge", "difflogic").code == 0


def test_train_on_a_recording_names_the_build_command_first(difflogic: Call) -> None:
    np.save("film.npy", np.random.default_rng(1).integers(0, 2, (1, 8, 8)).repeat(4, axis=0))
    done = difflogic("train", "--from-film", "film.npy", "--epochs", 1, "--restarts", 0, "--engine", "cpu")
    assert "Without training, difflogic build film.npy finds their rule" in done.out.splitlines()[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("checkerboard", "Cannot build a circuit for checkerboard without training"),
        ("heart-persistent", "Cannot build a circuit for heart-persistent without training"),
        ("nothing.png", "nothing.png"),
        ("z.txt", "z.txt is not a rule table: expected 512 digits"),
        ("B3/S2x", "'B3/S2x' is not a rule: expected B3/S23"),
        ("lizzard", "Unknown file or preset lizzard (did you mean lizard?)"),
        ("B3/S23 --frames 3", "--frames does not apply to a rule: omit it."),
        ("r.cells --colors 8", "--colors does not apply to a pattern: omit it."),
        ("r.cells", "name one with --recording-rule"),
    ],
)
def test_build_refuses_options_that_do_not_apply(given: str, words: str, difflogic: Call, inputs: Path) -> None:
    done = difflogic("build", *given.split())
    assert (done.code, done.errors.count("\n")) == (2, 1)
    assert words in done.errors
