"""`difflogic evaluate`: its table, its JSON, its report, and what it refuses."""

import json
import re
import shutil
from pathlib import Path

import pytest

from difflogic.devices.open import open_engine
from difflogic.evaluation import suite
from difflogic.runs import checkpoint, checksummed
from difflogic.train.trainer import Trainer
from tests.cli.conftest import Said
from tests.train.tiny import tiny_config


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "ROBUST_SIDE", 12)
    monkeypatch.setattr(suite, "ROBUST_STEPS", 20)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run of two seeds, three epochs long."""
    folder = tmp_path_factory.mktemp("trained") / "here"
    Trainer(tiny_config(epochs=3), open_engine("reference")).run(out=folder, population=2)
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    return Path("here")


def test_command_prints_a_table(run: Path, said: Said) -> None:
    out, errors = said("evaluate", run, "--quick")
    lines = out.splitlines()
    assert re.match(r"tiny, seed \d+ of 2 models, after epoch 3, on cpu: ", lines[0])
    assert "8 fresh initial states, after T = 3 steps" in lines
    assert any(line.startswith("robustness: 12x12, 2 asynchronous steps") for line in lines)
    assert re.match(r"  result: \d+ of 54$", lines[lines.index("active soft gates: neither A nor B") + 1])
    assert max(map(len, lines[1:])) <= 120, "a table of prose is told line by line in a pipe"
    assert lines[-1] == "Written: here/evaluation.json"
    assert errors.count("... ") == len(json.loads((run / "evaluation.json").read_text())["measures"])


def test_json_has_the_results(run: Path, said: Said) -> None:
    out, errors = said("evaluate", run, "--starts", "3", "--member", "2", "--engine", "cpu", "--json")
    assert "..." not in errors
    data = json.loads(out)
    assert out.count("\n") == 1
    assert data == json.loads((run / "evaluation.json").read_text())
    assert (data["seed"], data["starts"], data["quick"]) == (24, 3, False)
    assert data["engine"].startswith("cpu: ")


@pytest.mark.parametrize("as_json", [False, True])
def test_read_only_run_is_evaluated_with_a_warning(run: Path, said: Said, as_json: bool) -> None:
    (run / "evaluation.json").mkdir()  # not even root can replace a folder by a file
    options = ["--json"] if as_json else ["--html", "report.html"]
    out, errors = said("evaluate", run, "--quick", *options)
    warning = "Warning: the results are not saved in the run folder. Cannot write here/evaluation.json: "
    assert errors.splitlines()[-1].startswith(warning)
    assert json.loads(out)["quick"] if as_json else "8 fresh initial states" in out
    assert as_json or out.endswith("Written: report.html\n")


def test_two_runs_are_compared(run: Path, said: Said) -> None:
    shutil.copytree(run, "there")
    out, _ = said("evaluate", run, "there", "--quick", "--curves", "both.png")
    lines = out.splitlines()
    first = lines.index("robustness: 12x12, 2 asynchronous steps, a 10x10 square zeroed anywhere after each")
    assert lines[first + 1].startswith("  here: mean error ")
    assert lines[first + 2].startswith("  there: mean error ")
    assert lines[-3:] == ["Written: here/evaluation.json", "Written: there/evaluation.json", "Written: both.png"]
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(said("evaluate", run, "there", "--quick", "--json").out)["runs"]
    assert found["here"]["measures"] == found["there"]["measures"]


def test_html_report_loads_no_other_file(run: Path, said: Said) -> None:
    odd = run.rename("<b>&here")
    assert said("evaluate", odd, "--quick", "--html", "report.html").out.endswith("Written: report.html\n")
    text = Path("report.html").read_text(encoding="utf-8")
    links = re.findall(r"""\s(?:src|href)\s*=\s*["']?([^"'>\s]*)""", text, re.IGNORECASE)
    assert len(links) > 5
    assert all(re.fullmatch(r"data:image/(gif|png);base64,[A-Za-z0-9+/=]+", link) for link in links)
    assert not re.search(r"<(script|link|iframe)|url\(", text, re.IGNORECASE)
    assert "&lt;b&gt;&amp;here" in text
    for measure in json.loads((odd / "evaluation.json").read_text())["measures"]:
        assert measure["title"] in text
        assert measure["text"] in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("nowhere", "No run folder or checkpoint file at nowhere."),
        ("here --member 3", "Unknown model 3 of here: expected 1 to 2, of seeds 23 to 24."),
        ("here --starts 0", "Invalid value for '--starts'"),
        ("here --engine abacus", "Unknown engine 'abacus'"),
        ("here --html here", "Expected a file, but here is a folder."),
        ("here --curves one.png", "--curves requires several runs"),
        ("here here --html x.html", "--html requires a single run"),
    ],
)
def test_wrong_options_are_refused(run: Path, said: Said, arguments: str, text: str) -> None:
    assert text in said("evaluate", *arguments.split(), code=2).err


def test_run_of_another_version_is_refused(run: Path, said: Said) -> None:
    file = run / checkpoint.NAME
    data = file.read_bytes()
    metadata = checksummed.metadata(data) | {"format": "9", "difflogic": "7.0"}
    file.write_bytes(checksummed.encode(checksummed.decode(data), metadata))
    assert "was written by difflogic 7.0 in format 9" in said("evaluate", run, code=1).err


def test_fault_options_print_curves(run: Path, said: Said) -> None:
    asked = ("--flip", "0.5", "--stuck-cells", "1", "--stuck-gates", "54", "--html", "report.html")
    said("evaluate", run, "--quick", *asked)
    measures = {each["key"]: each["values"] for each in json.loads((run / "evaluation.json").read_text())["measures"]}
    flips, cells, gates = (measures[key] for key in ("flip", "stuck-cells", "stuck-gates"))
    assert list(flips) == ["0", "0.03125", "0.0625", "0.125", "0.25", "0.5"]
    assert list(gates) == ["0", "3", "7", "14", "27", "54"]
    assert flips["0"] == cells["0"] == gates["0"]
    # Bits that are tossed before the last step, and gates that are all stuck, tell nothing of the board.
    assert all(0.3 < each["0.5" if each is flips else "54"] < 0.7 for each in (flips, gates))
    assert measures["single-stuck-gates"] == {}, "nothing is left of this circuit once it is simplified"
    assert (run / "faults.png").read_bytes().startswith(b"\x89PNG")
    assert "Under faults" in Path("report.html").read_text()
