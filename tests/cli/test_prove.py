"""`difflogic prove` of one run: what it prints, keeps and refuses."""

import json
from pathlib import Path

import pytest

from difflogic.circuits.synthesis import resubstitution
from difflogic.circuits.synthesis.tools import run_in
from difflogic.config import presets
from tests.cli.conftest import Said
from tests.evaluation.pass_on import keeper, keeper_config
from tests.evaluation.test_proof import kept_run
from tests.learned import learned
from tests.programs import needs


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    config = presets.get("checkerboard")
    return kept_run(Path("board"), config, learned(config))


def test_proof_is_saved_and_checked(board: Path, said: Said) -> None:
    text, written = said("prove", "board", "--every-start").out.splitlines()
    assert text.startswith("Every one of the 2^2048 starts on 16x16 cells shows the target from step ")
    assert written == "Written: board/proof.json"
    assert said("prove", "--check", "board/proof.json", "board").out == f"Confirmed. {text}\n"
    claim = json.loads((board / "proof.json").read_text())
    (board / "proof.json").write_text(json.dumps(claim | {"from_step": claim["from_step"] - 1}))
    found = json.loads(said("prove", "--check", "board/proof.json", "--json", code=1).out)
    assert found == {"confirmed": False, "differs": ["from_step"], "text": text}
    (board / "proof.json").write_text(json.dumps(claim | {"text": "A lie.", "method": "by hand"}))
    found = said("prove", "--check", "board/proof.json", code=1).out
    assert found == f"NOT confirmed: text, method of board/proof.json differ. {text}\n"


def test_file_is_proved_for_the_task_next_to_it(board: Path, said: Said) -> None:
    config = presets.get("checkerboard")
    said("export", "board", "--format", "json", "--format", "blif", "-o", ".")
    result = said("prove", "board", "--every-start").out.splitlines()[0].partition(" starts ")[2]
    for file in ("board.json", "board.blif"):
        Path("config.toml").write_text(config.to_toml())
        assert said("prove", file, "--every-start").out.endswith(f" starts {result}\n")
        Path("config.toml").write_text(config.with_(model={"periodic": True}).to_toml())
        assert "do not match its task" in said("prove", file, "--every-start", code=2).err
        Path("config.toml").unlink()
        assert "config.toml does not exist" in said("prove", file, "--every-start", code=2).err


def test_netlist_of_abc_is_proved(board: Path, said: Said) -> None:
    """ABC writes no comments, and removes the channels that the image never depends on."""
    needs("berkeley-abc")
    said("export", "board", "--format", "blif", "-o", ".")
    run_in(Path(), "berkeley-abc", "-q", "read_blif board.blif; strash; dc2; write_blif smaller.blif")
    assert "Equal: " in said("prove", "board", "smaller.blif", "--judge", "difflogic").out


def test_next_commands_quote_a_name_that_begins_with_a_dash(board: Path, said: Said, monkeypatch) -> None:
    monkeypatch.setattr(resubstitution, "WORK", 0)
    assert "\n  difflogic simulate ./-s.json  " in said("simplify", "life", "-o", "-s.json").out
    assert said("show", "./-s.json").out


def test_berkeley_abc_proves_the_claim(board: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("berkeley-abc")
    text, _ = said("prove", "board", "--every-start", "--size", "8x12", "--judge", "berkeley-abc").out.splitlines()
    assert text == "Every one of the 2^768 starts on 8x12 cells shows the target from step 20 on, for ever."
    assert said("prove", "--check", "board/proof.json").out == f"Confirmed. {text}\n"
    monkeypatch.setenv("PATH", "")
    missing = said("prove", "--check", "board/proof.json", code=1).err
    assert missing == "Error: berkeley-abc is not installed: install the package berkeley-abc on Debian or Ubuntu.\n"


def test_exported_grid_states_its_claim(board: Path, said: Said) -> None:
    needs("berkeley-abc")
    lines = said("export", "board", "--format", "aiger", "--grid", "8x4", "--verify").out
    assert "aiger: claims that every initial state shows the target from step 20 on\n" in lines
    assert b"Property proved" in run_in(Path(), "berkeley-abc", "-q", "read board.aig; pdr")


def test_json_and_out_of_a_proof(board: Path, said: Said) -> None:
    found = json.loads(said("prove", "board", "--size", "24x16", "--json", "-o", "wide.json").out)
    assert found == json.loads(Path("wide.json").read_text())
    assert (found["width"], found["height"], found["proved"]) == (24, 16, True)
    assert not (board / "proof.json").exists()


@pytest.mark.parametrize("judge", ["difflogic", "berkeley-abc"])
def test_counterexample_is_printed_and_saved(judge: str, tmp_path, monkeypatch, said: Said) -> None:
    monkeypatch.chdir(tmp_path)
    task = {"target": "checkerboard", "height": 4, "width": 4, "steps": 3}
    kept_run(Path("still"), keeper_config(2, task), keeper(2))
    needs(*{judge} - {"difflogic"})
    lines = said("prove", "still", "--judge", judge, code=1).out.splitlines()
    assert lines[0].startswith("Wrong for every start on 4x4 cells: ")
    names = ("proof.json", "proof-counterexample.npy", "proof-counterexample.png")
    assert lines[1:] == [f"Written: still/{name}" for name in names]
    assert "are wrong at step 3." in lines[0]
    said("simulate", "still", "--start", "still/proof-counterexample.npy", "--steps", 3)


def test_proof_of_a_read_only_run_causes_a_warning(board: Path, said: Said) -> None:
    (board / "proof.json").mkdir()
    warning = "Warning: the proof is not saved in the run folder. Cannot write board/proof.json"
    assert warning in said("prove", "board").err


@pytest.mark.parametrize(("arguments", "message"), [
    ("", "Nothing to prove: give a run, two circuits, or --check with a proof.json."),
    ("board board --every-start", "--every-start is only for proofs of one run"),
    ("board --judge yosys", "--checker yosys is only for comparing two circuits: name two. A run's claim has one "
                            "checker"),
    ("board --periodic", "--periodic and --zero are only for comparing"),
    ("board --seconds 0", "0.0 is not in the range x>0"),
    ("--check none.json", "Cannot read the circuit none.json"),
    ("board --size 2x2", "height must be an integer between 3 and 65536"),
])  # fmt: skip
def test_options_of_other_proofs_are_refused(board: Path, said: Said, arguments: str, message: str) -> None:
    assert message in said("prove", *arguments.split(), code=2).err


def test_proof_of_another_circuit_is_refused(board: Path, said: Said) -> None:
    life = presets.get("game-of-life")
    kept_run(Path("life"), life, learned(life))
    said("prove", "life")
    errors = said("prove", "--check", "life/proof.json", "board", code=2).err
    assert "is not a proof about the circuit of board: their hashes differ." in errors
