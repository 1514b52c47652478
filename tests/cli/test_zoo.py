"""The circuits of the zoo do what they say. NumPy and gymnasium alone run them here, from the text of their files."""

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

import difflogic
from benchmarks.films import stepped
from benchmarks.zoo import loops, states
from benchmarks.zoo.__main__ import judge
from difflogic.circuits.readers import aiger, source, zoo
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.core import text_picture
from examples.tasks.difflogic_tasks.suits import SUITS
from tests.cli.conftest import Said
from tests.sampled import sampled

Bits = npt.NDArray[np.bool_]


def results(circuit: dict[str, Any], values: dict[str, Bits]) -> Bits:
    """The outputs of a circuit, by its inputs' names."""
    for gate in circuit["gates"]:
        a, b, table = values[gate["a"]], values[gate["b"]], gate["gate"]
        rows = [(~a & ~b, 8), (~a & b, 4), (a & ~b, 2), (a & b, 1)]
        values[gate["id"]] = np.any([row for row, bit in rows if table & bit] or [np.zeros_like(a)], axis=0)
    return np.stack([values[output] for output in circuit["outputs"]])


def played(controller: dict[str, Any], seed: int) -> float:
    """The return of an episode."""
    environment = gymnasium.make(controller["environment"])
    seen, _ = environment.reset(seed=seed)
    memory = [0] * controller.get("memory", 0)
    total, over = 0.0, False
    while not over:
        values = {
            f"{each['name']}>={threshold}": np.asarray(value >= threshold)
            for each, value in zip(controller["observations"], [*map(float, seen), *memory], strict=True)
            for threshold in each["thresholds"]
        }
        bits = results(controller, values).tolist()
        memory = bits[len(bits) - len(memory) :]
        action = sum(bit << place for place, bit in enumerate(bits[: len(bits) - len(memory)]))
        seen, reward, done, late, _ = environment.step(action)
        total, over = total + float(reward), done or late
    return total


def generation(rule: str, state: npt.NDArray[np.uint8]) -> npt.NDArray[np.generic]:
    """The next `[N, H, W, 1]` by a rule of two states."""
    if rule[0] == "W":
        return int(rule[1:]) >> (4 * np.roll(state, 1, 2) + 2 * state + np.roll(state, -1, 2)) & 1
    born, stays, hexagons = re.fullmatch(r"B(\d*)/S(\d*)(H?)", rule).groups()
    # What is rolled by (1, -1) comes from the top right, and of hexagons does not touch.
    apart = ((0, 0), (1, -1), (-1, 1)) if hexagons else ((0, 0),)
    around = sum(np.roll(state, each, (1, 2)) for each in product((-1, 0, 1), repeat=2) if each not in apart)
    return np.where(state, np.isin(around, [*map(int, stays)]), np.isin(around, [*map(int, born)]))


@pytest.mark.parametrize("name", sampled(zoo.names(), set(zoo.names()) - {"acrobot", "cartpole-memory"}))
def test_zoo_circuit_behaves_as_described(name: str) -> None:
    data = zoo.entry(name)
    if "environment" in data:
        least = gymnasium.spec(data["environment"]).reward_threshold
        assert np.mean([played(data, seed) for seed in range(5)]) >= least
        return
    circuit, rng = data.get("circuit", data), np.random.default_rng(5)
    if name in loops.LOOPS:
        netlist = source.load(zoo.FOLDER / f"{name}.json").netlist
        start = text_picture.decode(circuit["habitat"]["picture"], netlist.channels)[None]
        assert np.array_equal(stepped(circuit, start)[0], netlist.after(start[0], 1))
        assert loops.copies(netlist) > 1
        assert loops.copies(replace(netlist, scenario=replace(netlist.scenario, steps=1))) < 2
        return
    if "does" in data and name != "suits":
        rule = states.RULES[name]
        now = rng.integers(rule.states, size=(1, 100, 100)).astype(np.uint8)
        assert np.array_equal(stepped(circuit, rule.bits(now)), rule.bits(rule.step(now)))
        return
    if "does" in data:
        for code, rows in enumerate(SUITS):
            state = np.zeros((1, 10, 10, circuit["channels"]), dtype=np.uint8)
            state[..., 1], state[..., 2] = code >> 1, code & 1
            for _ in range(circuit["habitat"]["steps"]):
                state = stepped(circuit, state)
            assert text_picture.encode(state[0, ..., :1]) == rows
        return
    if data["rule"]:
        state = (rng.random((1, 100, 100, 1)) < 0.4).astype(np.uint8)
        assert np.array_equal(stepped(circuit, state), generation(data["rule"], state))
        return
    height, width, start = data["height"], data["width"], circuit["habitat"]["start"]
    state = (rng.random((1, height, width, circuit["channels"])) < (0.5 if start == "random" else 0)).astype(np.uint8)
    if start == "seed":
        state[:, height // 2, width // 2] = 1
    fires = circuit["habitat"]["fire_rate"]
    for _ in range(data["steps"] * (1 if fires == 1 else 8)):
        state = np.where(rng.random((height, width, 1)) < fires, stepped(circuit, state), state)
    assert list(text_picture.encode(state[0, ..., : circuit["visible"]])) == data["target"]


def test_zoo_counts_gates_as_simplify_does() -> None:
    assert sum(path.stat().st_size for path in zoo.FOLDER.iterdir()) < 1_000_000
    for name in zoo.names():
        data = zoo.entry(name)
        assert data["proved"]
        before, after = data["learned"]["gates"]
        file = zoo.FOLDER / f"{name}.json"
        assert before >= after == gate_count(source.function(file) or difflogic.load(file).netlist)


def test_file_takes_precedence_over_a_zoo_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert zoo.path(Path("life")) == zoo.FOLDER / "life.json"
    for other in ("lief", "runs/life", ""):
        assert zoo.path(Path(other)) == Path(other)
    (tmp_path / "life").mkdir()
    assert zoo.path(Path("life")) == Path("life")


def test_commands_read_zoo_names_and_prove_again(said: Said) -> None:
    listed = said("zoo", "--json").out.splitlines()
    assert [json.loads(line)["name"] for line in listed] == zoo.names()
    assert said("zoo").out.endswith("\n\nShow one: difflogic zoo NAME\n")
    assert said("zoo", "life").out.endswith("Run it:  difflogic simulate life --live\n")
    assert said("zoo", "cartpole").out.endswith("Run it:  difflogic evaluate cartpole\n")
    assert "mean return 500.0" in said("evaluate", "cartpole", "--starts", 1).out
    assert said("prove", "life", "B3/S23", "--judge", "difflogic").out.endswith("from every neighbourhood.\n")
    assert said("prove", "--check", zoo.FOLDER / "life.json").out.startswith("Confirmed. ")
    assert "which has no grid: use evaluate, render, simplify" in said("simulate", "cartpole", code=2).err
    for name in ("wireworld", "suits"):
        assert said("zoo", name).out.endswith(f"Run it:  difflogic simulate {name} --live\n")
        assert said("simulate", name, "--steps", 1).out
        assert said("show", name).out.startswith(str(zoo.FOLDER / name))
    for command in ("zoo", "simulate", "show"):
        assert "did you mean life?" in said(command, "lief", code=2).err


def test_zoo_checker_evaluates_other_programs_results(tmp_path: Path) -> None:
    def made_by_us(circuit: object, name: str, kind: str = "blif") -> Path:
        made = difflogic.export(circuit, [{"aig": "aiger"}.get(kind, kind)], name=name)  # type: ignore[arg-type]
        content = made.files[f"{name}.{kind}"]
        (path := tmp_path / f"{name}.{kind}").write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    # As it is, larger, and the circuit of another rule.
    assert judge("life", made_by_us("life", "life")) == "life: equal, 24 gates: as small as the best known, 24."
    assert judge("highlife", made_by_us("B36/S23", "built")).startswith("highlife: equal, 33 gates: larger than")
    assert "equal," not in judge("life", made_by_us("highlife", "other"))
    result = judge("life", made_by_us("life", "life", "aig"))
    assert result == "life: equal, 52 ANDs: as small as what export writes, 52."
    assert judge("highlife", made_by_us("B36/S23", "built", "aig")).startswith("highlife: equal, ")
    assert "equal," not in judge("life", made_by_us("highlife", "other", "aig"))


def test_binary_aiger_is_read_with_constants_and_inverters() -> None:
    like = difflogic.load("life").netlist
    read = aiger.read(b"aig 10 9 0 1 1\n21\n\x02\x03c\n").like(like)  # NOT (patch[8] AND NOT patch[6])
    assert read.rollout(np.zeros((1, 3, 3, 1), np.uint8), 1)[-1].all()
    for nothing, all_on in ((b"0", False), (b"1", True)):
        read = aiger.read(b"aig 9 9 0 1 0\n" + nothing + b"\nc\n").like(like)
        assert read.rollout(np.zeros((1, 3, 3, 1), np.uint8), 1)[-1].all() == all_on
