"""The scripts in benchmarks/: inputs follow from the seed, and comparisons find what differs."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from PIL import Image
from safetensors.numpy import save_file

from benchmarks import films, golly_patterns, page_steps, pictures, same_bits, store, success, truth
from benchmarks.arithmetic import Arithmetic, counted
from benchmarks.channels import PLACES, arrows, read_by
from benchmarks.same_bits import Outcome, compared, section
from benchmarks.service import load
from benchmarks.store import CHECKOUT, Line
from difflogic.circuits.readers import source
from difflogic.circuits.readers.rule import rule_netlist
from difflogic.config import picture_file
from difflogic.core import patterns
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import UsageError
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


def parts(folder: Path, name: str, content: str) -> dict[str, str]:
    (folder / name).write_text(content)
    return dict(truth.parts_of(folder / name, name))


@pytest.mark.parametrize(
    ("name", "one", "same", "other"),
    [
        ("metrics.csv", "epoch,loss,elapsed_s\n1,2.5,3\n", "epoch,loss,elapsed_s\n1,2.5,4\n", "epoch,loss\n1,2.6\n"),
        ("metrics.jsonl", '{"loss": 1, "at_s": 1}\n{}\n', '{"loss": 1, "at_s": 2}\n{}\n', '{"loss": 2}\n{}\n'),
        ("a.json", '{"gates": [{"seconds": 1, "n": 2}]}', '{"gates": [{"n": 2}]}', '{"gates": [{"n": 3}]}'),
        ("a.jsonl", '{"event": "progress", "step": 1}\n{"a": 1}', '{"a": 1}', '{"a": 2}'),
        ("summary.txt", "Solved\nTime: 1 s\n", "Solved\nTime: 2 s\n", "Not solved\n"),
        ("a.v", "// difflogic 0.1.0\n", "// difflogic 0.2.0.dev1\n", "// difflogic 0.1.0, more\n"),
    ],
)
def test_times_are_left_out(name: str, one: str, same: str, other: str, tmp_path: Path) -> None:
    assert parts(tmp_path, name, one) == parts(tmp_path, name, same) != parts(tmp_path, name, other)


def test_every_bit_of_a_checkpoint_counts(tmp_path: Path) -> None:
    arrays = {"logits": np.zeros(3, np.float32), "mu": np.ones(2, np.float32), "elapsed_s": np.ones(1)}
    save_file(arrays, tmp_path / "a.safetensors")
    arrays["logits"][1] = np.nextafter(np.float32(0), np.float32(1))
    save_file(arrays | {"elapsed_s": np.zeros(1)}, tmp_path / "b.safetensors")
    one, other = (dict(truth.parts_of(tmp_path / f"{name}.safetensors", "")) for name in "ab")
    assert one.keys() == {":logits", ":mu"}
    assert [name for name in one if one[name] != other[name]] == [":logits"]


def told(found: dict[str, str], **on: str) -> dict[str, Any]:
    return {"format": truth.FORMAT, "on": {"exact": "", "cpu": "here"} | on, "found": found}


@pytest.mark.parametrize(
    ("now", "code", "words"),
    [
        (told({"exact/a": "1", "cpu/b": "2"}), 0, "2 values compared (exact, cpu): none differ."),
        (told({"exact/a": "1", "cpu/b": "3"}), 1, "cpu/b: before 2, now 3"),
        (told({"exact/a": "1"}), 1, "cpu/b: before 2, now absent"),
        (
            told({"exact/a": "1", "cpu/b": "3"}, cpu="elsewhere"),
            0,
            "cpu: not compared: before on here, now on elsewhere.",
        ),
    ],
)
def test_comparison(now: dict[str, Any], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert truth.compared(told({"exact/a": "1", "cpu/b": "2"}), now) == code
    assert words in capsys.readouterr().out


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"format": "difflogic-bench"}))
    with pytest.raises(SystemExit, match=r"a\.json is no file of benchmarks\.truth\."):
        truth.read(tmp_path / "a.json")


LOSSES, LOGITS, FRAMES = np.array([4, 2], np.float32), np.eye(2, 16, dtype=np.float32), np.ones((4, 2), np.uint8)
ONE = Outcome("gpu", "naga", "llvmpipe", LOSSES, LOGITS, 3, FRAMES)
HERE = {"machine": {"processor": "P", "cores": 2}}


def rows(*lines: Line) -> list[str]:
    return section([each | HERE for each in lines]).splitlines()[4:]


def test_equal_is_every_bit() -> None:
    (row, _) = rows(compared(replace(ONE, compiler="Tint"), ONE))
    assert row == "| gpu | Tint | llvmpipe | gpu, naga, llvmpipe | equal | equal | equal |"


def test_what_is_close_is_told_in_numbers() -> None:
    logits = ONE.logits.copy()
    logits[0, 0] += 0.25
    other = replace(ONE, driver="none", losses=np.array([4, 2.5], np.float32), logits=logits)
    assert (
        "| equal | close: 2.5e-01 of it | close: 3 % differ, by at most 2.5e-01; the same gates |"
        in rows(compared(other, ONE))[0]
    )


def test_a_bit_of_the_circuit_shows() -> None:
    hard = ONE.hard.copy()
    hard[0, 0] = 0
    for other in (replace(ONE, hard=hard), replace(ONE, wrong=4)):
        assert "| **DIFFERENT** |" in rows(compared(other, ONE))[0]


def test_cards_are_open_until_one_is_measured() -> None:
    line = compared(ONE, ONE)
    assert "open: not measured" in rows(line)[-1]
    assert "open" not in rows(line | {"software": False})[-1]


def test_the_page_shows_what_is_kept() -> None:
    assert Path(same_bits.PAGE).read_text(encoding="utf-8") == same_bits.page()
    assert all(line["hard_equal"] for line in store.load("same_bits"))


def test_a_recording_holds_all_that_it_begins_with() -> None:
    data = same_bits.recorded()
    for name in ("trained", "hard"):
        assert not any(contents is True for *_, contents in data[name]["buffers"])


@pytest.mark.exhaustive
def test_another_compiler_trains_to_the_same_bits_on_the_same_driver() -> None:
    """wgpu with naga, and a recording played by Dawn with Tint."""
    node.needs()
    driver = "llvmpipe"
    if not same_bits.DRIVERS[driver].exists():
        pytest.skip(f"this system keeps {driver} elsewhere")
    line = compared(same_bits.in_node(driver), same_bits.native(*same_bits.NAGA, driver))
    assert line["hard_equal"]
    assert line["losses_equal"]
    assert line["logits_equal"]


def line(preset: str, seed: int, solved: bool, **more: object) -> dict[str, object]:
    known = {"protocol": success.PROTOCOL, "preset": preset, "recipe": "robust", "seed": seed, "solved": solved}
    known |= {"seconds": 10.0 + seed, "papers": 0.5 * seed, "active_gates": 7, "gates": 5, "from_step": None}
    return {**known, **more}


def test_a_seed_that_is_done_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / success.FILE
    path.write_text(json.dumps(line("lizard", 1, solved=False)) + "\n")
    done = success.load(path)
    assert not success.missing(success.Case("lizard", "robust", 1), done)
    assert success.missing(success.Case("lizard", "paper", 1), done)
    assert success.missing(success.Case("lizard", "robust", 2), done)


def test_a_folder_of_another_protocol_is_refused(tmp_path: Path) -> None:
    path = tmp_path / success.FILE
    path.write_text(json.dumps(line("lizard", 1, solved=True, protocol=99)) + "\n")
    with pytest.raises(UsageError) as refused:
        success.load(path)
    said = f"{path} holds results of protocol 99, but this is protocol {success.PROTOCOL}: give another folder."
    assert str(refused.value) == said


def test_the_table() -> None:
    lines = [line("checkerboard", seed, solved=seed < 3, from_step=[None, 16, 24, None][seed]) for seed in range(4)]
    rows = success.report(lines).splitlines()
    # Of those solved two are proved, one of them from a step on that is later than the task's twentieth.
    begins = "| checkerboard | robust | 3 of 4 | 3 of 4 | 11 (10 to 12) | 38.2 s | 2.5 | 7 (7 to 7) |"
    assert f"{begins} 5 (5 to 5) | 2, 1 of them late |" in rows
    picture = success.report([line("lizard", 1, solved=True)])
    assert "| lizard | robust | 1 of 1 | 1 of 1 | 11 (11 to 11) | 11 s | 0.5 | 7 (7 to 7) | 5 (5 to 5) | - |" in picture


def test_the_papers_recipe_stands_beside_it() -> None:
    """4 of 32 runs of 500 epochs each: ln 0.01 / ln (1 - 1 / 8) = 34.5 runs of nearly all their epochs."""
    (row,) = (row for row in success.report([]).splitlines() if row.startswith("| checkerboard | paper |"))
    assert row.startswith("| checkerboard | paper | 4 of 32 | 4 of 32 | - | - | 33 |")


def test_rules_have_names_or_are_drawn() -> None:
    named = success.Case(success.RULES, "robust", success.FIRST)
    assert named.rule == "B36/S23"
    assert named.config.task.rule == "B36/S23"
    assert named.papers * named.config.train.batch == 60_000
    drawn = [success.Case(success.RULES, "robust", success.FIRST + 4 + n).rule for n in range(success.DRAWN)]
    tables = [success.Case(success.TABLES, "robust", success.FIRST + n).config.task.rule for n in range(success.DRAWN)]
    assert len({*drawn}) == len({*tables}) == success.DRAWN


def test_time_to_a_solution() -> None:
    """Half of the runs fail: after 6.64 of them, 10 s each, 99 % have had one that did not."""
    half = [{"solved": seed % 2 == 0, "seconds": 10.0} for seed in range(8)]
    assert success.tts99(half, "seconds") == pytest.approx(66.4, abs=0.05)
    assert success.tts99([{"solved": True, "seconds": second} for second in (1, 5, 3)], "seconds") == 5
    assert success.tts99([{"solved": False, "seconds": 1}], "seconds") == float("inf")


def test_gates_are_looked_up_to_judge_a_rule() -> None:
    rule = "B2/S34H"
    assert success.follows(rule_netlist(rule, periodic=True), rule)
    assert not success.follows(rule_netlist("B2/S35H", periodic=True), rule)
