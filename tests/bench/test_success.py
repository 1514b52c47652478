"""The study of success: what is counted and refused."""

import json
from pathlib import Path

import pytest

from benchmarks import success
from difflogic.circuits.readers.rule import rule_netlist
from difflogic.errors import UsageError


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
