"""Small arrays on every device: shapes of what comes out, never a time."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import keep
from difflogic.bench import arrays, scaling
from difflogic.bench.arrays import CASES, ArrayCase, open_array_contender
from difflogic.bench.engines import Bench
from difflogic.bench.results import Results, compare
from difflogic.bench.runner import Effort, measure
from difflogic.bench.timed import WrongResultError
from difflogic.cli.main import main
from difflogic.devices.open import open_engine
from difflogic.errors import UsageError

SIZES = (("matmul", 8), ("matmul", 20), ("add", 5), ("sum", 9), ("network", 3))
TINY = (*(ArrayCase(*each) for each in SIZES), ArrayCase("logic", 20, layers=2))
EFFORT = Effort(rounds=2, round_seconds=0.0, memory=False)
OURS = ("gpu", "cpu")


@pytest.fixture(scope="module")
def benches() -> list[Bench]:
    return [Bench(name, open_engine(name), 1e9) for name in (*OURS, "reference")]


@pytest.fixture(scope="module")
def measured(benches: list[Bench]) -> Results:
    return measure(TINY, benches, EFFORT)


def test_every_case_on_every_device(measured: Results) -> None:
    """The reference is left out, which is NumPy as the processor; PyTorch comes along where it is installed."""
    names = [*OURS, *(["torch:cpu"] if importlib.util.find_spec("torch") else [])]
    found = {(line["case"], line["engine"]) for line in measured.cases if line["engine"] != "torch:cuda"}
    expected = {(case.name, name) for case in TINY for name in names}
    assert found == expected - {("feed-forward/2x20", "torch:cpu")}  # PyTorch has no layers of logic gates
    assert measured.skipped == []
    for line in measured.cases:
        assert line["gflop_per_s"] > 0
        assert ("share_of_copy_rate" in line) == (line["case"].partition("-")[0] not in ("arrays/network", "feed"))


def test_the_results_are_a_file_like_others(measured: Results, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(measured.to_json())
    found = Results.load(tmp_path / "one.json")
    assert {each.ratio for each in compare(found, found)} == {1.0}
    kept = keep.flatten(found)
    assert [line["case"] for line in kept] == [line["case"] for line in measured.cases]
    assert all(line["adapter"] and line["gflop_per_s"] for line in kept)
    other = Results(json.loads(measured.to_json()))
    other.cases[0]["flop"] += 1
    with pytest.raises(UsageError, match="arrays/matmul-8 has 1024 flop in the first and 1025 in the second"):
        compare(found, other)


def test_where_a_gpu_overtakes(measured: Results) -> None:
    said = scaling.overtaking(measured)
    assert len(said) == 4
    assert said[0].startswith("Matmul on gpu ")
    assert "size 20" in said[0] or "size 8" in said[0]


def test_what_takes_software_long_is_left_to_hardware(benches: list[Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "SOFTWARE_FLOP", 1024)
    found = measure(TINY[:2], benches[:1], EFFORT)
    assert [line["case"] for line in found.cases if line["engine"] == "gpu"] == ["arrays/matmul-8"]
    (skipped,) = found.skipped
    assert (skipped["case"], skipped["kind"]) == ("arrays/matmul-20", "does not fit")
    assert skipped["why"].endswith("take too long on a software adapter: use a hardware GPU")


@pytest.mark.parametrize("case", [TINY[0], TINY[3], TINY[5]], ids=lambda case: case.name)
def test_wrong_results_are_not_timed(benches: list[Bench], case: ArrayCase, monkeypatch: pytest.MonkeyPatch) -> None:
    right = arrays._expected
    monkeypatch.setattr(arrays, "_expected", lambda *given: right(*given) * 1.001)
    with pytest.raises(WrongResultError, match=f"{case.name} has an error of"):
        open_array_contender(case, benches[1])


def test_the_work_in_a_case() -> None:
    assert ArrayCase("matmul", 10).flop == 2000
    assert ArrayCase("network", 64).flop == 6 * 256 * (4 * 64 + 64 * 64 + 64)
    assert ArrayCase("logic", 1500, layers=8).flop == 21 * 256 * 8 * 1500
    assert ArrayCase("add", 10).traffic == 120
    assert {case.what for case in CASES} == {"matmul", "add", "sum", "network", "logic"}
    one, other = (case.operands() for case in (TINY[0], ArrayCase("matmul", 8)))
    np.testing.assert_array_equal(one, other)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--engine", "cpu", "--case", "arrays/network-64", "--quick", "--rounds", "1"]) == 0
    assert "arrays/network-64" in capsys.readouterr().out
    assert main(["bench", "--list"]) == 0
    assert "product of two square matrices" in capsys.readouterr().out
