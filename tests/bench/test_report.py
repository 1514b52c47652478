"""The README's tables, from results files made up here."""

from pathlib import Path

import pytest

from benchmarks import expected, instructions, keep, report, store
from difflogic.bench.engines import Bench
from difflogic.bench.runner import Effort, measure
from difflogic.devices.open import open_engine
from tests.bench.made_up import TINY


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def test_without_results_there_are_no_rows() -> None:
    tables = [block.splitlines() for block in report.section().split("\n\n") if block.lstrip().startswith("|")]
    assert [len(rows) for rows in tables] == [2 + len(expected.EXPECTED) * ("expected" in rows[0]) for rows in tables]


def test_measured_cases_are_kept_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "SECTIONS", ("train/tiny",))
    results = measure(TINY[:1], [Bench("reference", open_engine("reference"), 1e9)], Effort(1, 0.0, memory=False))
    (again,) = keep.flatten(results)
    store.append("bench", [again | {"machine": again["machine"] | {"load_1min": 17.0}}])
    store.append("bench", keep.flatten(results))
    (line,) = report.newest(store.load("bench"), "case")
    results.cases[0]["profile"] = {"parts": [{"name": "loss", "ms": 0.123456789}]}
    assert keep.flatten(results)[0]["kernels_ms"] == {"loss": 0.123457}
    assert "profile" not in line
    assert line["machine"] == results.data["machine"]
    (row,) = [row for row in report.section().splitlines() if row.startswith("| `train/tiny`")]
    assert "reference (NumPy)" in row


def test_what_nothing_was_measured_on_is_said() -> None:
    def line(system: str, **device: object) -> store.Line:
        return {"machine": {"system": system}, **device}

    llvmpipe = {"engine": "gpu", "adapter": "llvmpipe (1)", "software": True}
    said = {"bench": [line("Linux", **llvmpipe), line("Linux", engine="cpu", software=False)]}
    assert report.untried(said) == "It has not been tested on a hardware GPU, Windows or macOS yet."
    said["simulate"] = [line("Darwin", contender="gpu", device="Apple M9", software=False)]
    assert report.untried(said) == "It has not been tested on Windows yet."
    said["sweeps"] = [line("Windows", engine="gpu:0")]
    assert report.untried(said) == ""


def lines(rounds: dict[str, list[float]], models: int = 1, date: str = "2026-01-01", **on: object) -> list[store.Line]:
    """One run of a software GPU, or on another device: the times of each case by round."""
    device = {"engine": "gpu", "software": True, "adapter": "Soft (1)", "driver": "2.0", "device_mb": 139.4} | on
    here = {"machine": {"processor": "P", "cores": 2}, "date": date, "commit": "c", "rounds": 3, "models": models}
    here["gate_evaluations_per_s"] = 1e9
    return [
        {**device, **here, "case": case, "median_ms": sorted(ms)[1], "rounds_ms": ms} for case, ms in rounds.items()
    ]


def test_growth_is_the_median_of_ratios_round_by_round() -> None:
    """The machine was twice as slow in some rounds, in all cases alike."""
    store.append("bench", lines({"batch/2": [100, 100, 200], "batch/8": [410, 410, 820]}))
    store.append("bench", lines({"batch/32": [1e4, 2e4, 3e4]}, date="2026-01-02"))
    store.append("bench", lines({"population/1": [8, 9, 8], "population/4": [40, 39, 18]}, models=4))
    store.append("bench", lines({"train/checkerboard": [96, 48, 100], "logged/checkerboard": [100, 50, 200]}))
    software = "gpu on software: Soft, 2.0 | P, 2 cores"
    shown = report.section()
    assert f"| batch 2, 8, 32 | {software} | 100 ms, 410 ms, 20 s |  | 4.10, other runs |" in shown
    assert f"| models 1, 4 | {software} | 8 ms, 39 ms | 9.75 ms | 4.33 |" in shown
    assert f"| {software} | 96 % |" in shown, "what logging keeps"


def test_engines_are_compared_within_their_run_only() -> None:
    case = "train/checkerboard"
    store.append("bench", lines({case: [90, 100, 110]}) + lines({case: [400] * 3}, engine="reference"))
    store.append("bench", lines({case: [5] * 3}, date="2", adapter="Card (1)", software=False))
    rows = [row.split(" | ") for row in report.section().splitlines() if row.startswith("| `train/checkerboard` ")]
    assert [row[3:5] for row in rows] == [["100 ms", "4.0"], ["400 ms", "1.0"], ["5 ms", ""]]


def test_card_is_compared_with_the_processor_of_its_run() -> None:
    assert report.NOT_COMPARED in report.section()
    store.append("bench", lines({"grid/16": [2] * 3, "grid/32": [3] * 3}, adapter="Card (1)", software=False))
    store.append("bench", lines({"grid/16": [1] * 3, "grid/32": [12] * 3, "grid/64": [9] * 3}, engine="cpu"))
    store.append("bench", lines({"grid/32": [99] * 3}, date="2", engine="cpu"))
    assert "| grid/32 | gpu on hardware: Card, 2.0 | P, 2 cores | 3 ms | 12 ms | 4.0 |" in report.section()
    sentence = "A train step on Card (1) overtakes the processor (P, 2 cores) between grid side 16 and 32."
    assert sentence in report.section()
    assert sentence in report.on_cards()


def test_arithmetic_is_confirmed_or_refuted_by_each_card() -> None:
    here = {"software": False, "engine": "gpu", "date": "2026-12-01", "commit": "c"}
    rates = here | {"case": "rates", "contender": "device", "dispatch_us": 2.1, "copy_gb_per_s": 1000.0}
    store.append("card", [rates | {"adapter": name} for name in ("NVIDIA H100", "Card 9")])
    simulated = here | {"contender": "gpu", "device": "Card 9, 2.0", "date": "2026-11-01", "updates_per_s": 1e12}
    steps = simulated | {"contender": "gpu, step by step", "updates_per_s": 2e11}
    store.append("simulate", [simulated, steps, steps | {"commit": "other", "updates_per_s": 1e9}])
    rows = {(row[0], row[2].partition(",")[0]): row[3:] for row in expected.rows()}
    assert rows["Train step, checkerboard", "open"] == ["0.44", "0.5", "open", ""]
    assert rows["Gap between two dispatches", "Card 9"] == ["2", "", "2.1", "confirmed"]
    assert rows["Memory, 1 GiB copied by a shader", "NVIDIA H100"][2:] == ["1e+03", "refuted by a factor of 3.0"]
    assert rows["Memory, 1 GiB copied by a shader", "Card 9"] == ["", "", "1e+03", ""]
    assert rows["- generations in blocks, compared with one a dispatch", "Card 9"][2:] == ["5", "open: older kernels"]


@pytest.mark.exhaustive
@pytest.mark.skipif(not instructions.RADV.exists(), reason="Mesa's driver for cards of AMD is not installed")
def test_known_sizes_and_trust_save_instructions_of_a_card() -> None:
    lines = {line["contender"]: line["instructions"] for line in instructions.measure("game-of-life", "navi21")}
    assert lines["plain"].keys() >= {"gate_forward", "gate_backward", "adamw"}
    for kernel in ("gate_forward", "gate_backward"):
        assert lines["plain"][kernel] > lines["baked"][kernel] > lines["baked, trusted"][kernel] > 100
    # Without loads ahead, and with a wire in either of two memories, a turn took 165 forward and 300 backward.
    for kernel, most in (("gate_forward", 80), ("gate_backward", 215), ("hard_forward", 95)):
        assert 40 < lines["baked, trusted"][f"{kernel}, a turn"] <= most


def test_rivals_are_shown_with_their_ratio() -> None:
    machine = {"machine": {"processor": "Processor 9", "cores": 2}}
    line = {"contender": "jax_plain", "place": "cpu", "device": "cpu", "median_ms": 850.0, "peak_mb": 1200, **machine}
    store.append("rivals", [{**line, "ratio_to_ours": 60.04}])
    network = {"case": "feed-forward/8x1500", "iterations_per_s": 2.341, "contender": "torchlogix", "vectors": "AVX2"}
    store.append("networks", [{**line, **network, "ratio_to_ours": 46.04}])
    assert "| 8x1500 gates | torchlogix | cpu | Processor 9, 2 cores | 2.34 | 46.0 |" in report.section()
    assert "| JAX, plain | cpu | Processor 9, 2 cores | 850 ms | 60.0 | 1200 MB |" in report.section()
    assert "JAX, tuned by hand" not in report.section()
