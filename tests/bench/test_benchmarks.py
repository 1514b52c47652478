"""The scripts in benchmarks/: inputs follow from the seed, and comparisons find what differs."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding
from PIL import Image

from benchmarks import films, golly_patterns, page_steps, pictures
from benchmarks.arithmetic import Arithmetic, counted
from benchmarks.channels import PLACES, arrows, read_by
from benchmarks.service import load
from benchmarks.store import CHECKOUT
from difflogic.circuits.readers import source
from difflogic.config import picture_file
from difflogic.core import patterns
from difflogic.engine.simulation import SimulationSpec
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from tests.export_cases import life
from tests.javascript import node
from tests.programs import needs


def test_as_many_operations_as_the_loop_has() -> None:
    spec = SimulationSpec(life(), 128, 4096)
    limit = Arithmetic(spec)  # which counts its own operations
    limit.run(8)
    assert 0 < limit.turns_of_a_step < 128 * 4096 / 64


def test_wider_vectors_take_fewer_instructions_for_a_cell() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    spec = SimulationSpec(life(), 128, 4096)
    per_cell = []
    for name, features in (("znver4", "+avx512f"), ("haswell", "+avx2"), ("nehalem", "+sse2")):
        rows = counted(spec, "x86_64-unknown-linux-gnu", name, features)
        assert rows.loop.of_stack == 0
        per_cell.append(rows.loop.computing / rows.cells)
    assert per_cell == sorted(per_cell)


def test_the_checkerboard_is_read_as_its_page_tells():
    netlist = source.load(CHECKOUT / "benchmarks/circuits/checkerboard.json").netlist
    picture, two, three = (netlist.origin.index(channel) for channel in (0, 2, 3))
    gates, places = read_by(netlist, picture)
    named = {channel: {PLACES[each] for each in found} for channel, found in places.items()}
    assert gates == 3
    assert named == {two: {"below left", "above left", "below right"}, three: {"below left"}}
    assert read_by(netlist, two) == (0, {picture: [PLACES.index("below left")]})
    assert read_by(netlist, three) == (0, {picture: [PLACES.index("above left")]})
    assert {(before, channel, read) for before, channel, read, _ in arrows(netlist)} == {
        (0, picture, two), (0, picture, three), (1, two, picture), (1, three, picture)
    }  # fmt: skip


def test_rules_and_films_follow_from_the_seed() -> None:
    one, two = films.rules(1), films.rules(1)
    assert [rule.name for rule in one] == [rule.name for rule in two]
    assert len(one) == 14
    for first, second in zip(one, two, strict=True):
        (x, y), again = first.film(np.random.default_rng(2)), second.film(np.random.default_rng(2))
        assert np.array_equal(x, again[0])
        assert np.array_equal(y, again[1])
        assert np.array_equal(x[films.CLIPS :], y[: -films.CLIPS])  # a clip's next pair begins with its last frame
        assert x.shape[-1] == first.channels


def test_the_judge_steps_a_circuit_as_its_netlist_does() -> None:
    rng = np.random.default_rng(3)
    wires = [rng.integers(0, 18 + gate, 2) for gate in range(30)]
    netlist = CellNetlist.build(2, False, rng.integers(0, 16, 30), wires, [45, 47])
    x = rng.integers(0, 2, (3, 5, 6, 2), dtype=np.uint8)
    found = films.stepped(json.loads(netlist_json.to_json(netlist)), x)
    assert np.array_equal(found, netlist.rollout(x, 1)[-1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["Loops/Langtons-Loops", "Generations/Delta", "Life/Bounded-Grids/torus"])
def test_pattern_runs_as_bgolly_runs_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("bgolly")
    path = golly_patterns.PATTERNS / f"{name}.rle"
    assert golly_patterns.result(path) == "equal"
    other = patterns.read(path).states.copy()
    other[-1, -1] ^= 1
    monkeypatch.setattr(golly_patterns, "of_golly", lambda *_: other)
    assert golly_patterns.result(path) == "DIFFERENT"


@pytest.mark.exhaustive
def test_both_are_timed_once_they_train_the_same() -> None:
    node.needs()
    ours, page = page_steps.measured("game-of-life", 8, 1)
    assert (ours["contender"], ours["ratio_to_engine"]) == ("gpu", 1)
    assert page["contender"] == "page in Node"
    assert page["median_ms"] > 0


def test_what_trains_to_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    node.needs()
    monkeypatch.setattr(page_steps, "of_the_page", lambda *given: ([1.0, 1.0], 1.0))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        page_steps.measured("game-of-life", 2, 1)


def test_pictures_follow_from_the_seed_and_are_read_as_they_are_judged(tmp_path: Path) -> None:
    one, two = pictures.pictures(1), pictures.pictures(1)
    assert [picture.name for picture in one] == [picture.name for picture in two]
    for picture, again in zip(one, two, strict=True):
        assert np.array_equal(picture.pixels, again.pixels)
        Image.fromarray(picture.pixels).save(tmp_path / "picture.png")
        assert np.array_equal(picture_file.load(tmp_path / "picture.png", picture.colors).bits, picture.bits)
        assert picture.pixels.any()


SECONDS, CLIENTS = 10, 100


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")
def test_load_without_an_error(tmp_path: Path) -> None:
    line = load.measure(tmp_path / "jobs", SECONDS, CLIENTS, CLIENTS, rate=20, compared=False, flood=10 * CLIENTS)
    assert (line["errors"], line["error"]) == (0, None)
    assert line["reads"] >= 15 * SECONDS
    assert line["events"] > SECONDS * CLIENTS
    assert line["submit_p50_ms"] <= line["submit_p99_ms"] <= line["submit_max_ms"]
    assert len(line["flood_mb"]) == load.SAMPLES
    assert line["epochs_per_s_loaded"][0] > 0
