"""Measuring tiny cases on every engine: shapes of what comes out, never a time."""

import json
import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from difflogic.bench import contender, runner
from difflogic.bench.cases import Case
from difflogic.bench.contender import open_contender
from difflogic.bench.engines import Bench, OtherEngine, open_benches
from difflogic.bench.memory import peak_bytes
from difflogic.bench.profile import Profile, ProfilePart, bottleneck
from difflogic.bench.results import Results
from difflogic.bench.runner import Effort, measure
from difflogic.bench.timed import Timed, WrongResultError
from difflogic.devices import choose
from difflogic.devices.open import Placement, open_engine
from difflogic.engine.api import Engine, EngineInfo
from difflogic.engine.job import TrainState, make_job
from difflogic.errors import LimitError
from difflogic.model.circuit import Circuit
from tests.bench import made_up
from tests.bench.made_up import TINY

EFFORT = Effort(rounds=2, round_seconds=0.0, memory=False)


@pytest.fixture(scope="module")
def benches() -> list[Bench]:
    return [Bench(name, open_engine(name), 1e9, 1e-6, 1e-4, None) for name in ("gpu", "cpu", "reference")]


@pytest.fixture(scope="module")
def measured(benches: list[Bench]) -> Results:
    return measure(TINY, benches, EFFORT)


def test_every_case_on_every_engine(measured: Results) -> None:
    found = {(line["case"], line["engine"]) for line in measured.cases}
    assert found == {
        (case.name, engine)
        for case in TINY
        for engine in ("gpu", "cpu", "reference")
        if case.every_engine or engine != "reference"
    }
    assert measured.skipped == []
    assert not measured.lists("wrong")


def test_a_step_of_minutes_is_timed_once(benches: list[Bench]) -> None:
    found = measure([replace(TINY[0], name="huge/tiny", once=True, gpu_only=True)], benches, EFFORT)
    assert found.skipped == []
    (line,) = found.cases
    assert (line["engine"], line["rounds"]) == ("gpu", 1)
    assert line["median_ms"] == line["first_step_ms"]
    assert "profile" not in line


def test_hardware_is_given_its_rounds(benches: list[Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    contender = open_contender(replace(TINY[0], once=True), benches[0])
    for software in (True, False):
        monkeypatch.setattr(contender.model, "info", replace(contender.model.info, software=software))
        assert contender.once is software
    contender.model.close()


def test_lines_are_plain_and_finite(measured: Results) -> None:
    json.loads(measured.to_json())
    for line in measured.cases:
        assert 0 < line["min_ms"] <= line["median_ms"] <= line["max_ms"]
        assert line["rounds"] == len(line["rounds_ms"]) == 2
        assert line["gate_evaluations_per_s"] > 0
        assert all(math.isfinite(value) for value in line.values() if isinstance(value, float))


def test_train_lines_say_what_limits_them(measured: Results) -> None:
    lines = [line for line in measured.cases if line["unit"] == "train step" and "profile" in line]
    assert {line["engine"] for line in lines} == {"gpu", "cpu"}
    for line in lines:
        assert " of the step)" in line["limiter"]
        assert 0 <= line["transfer_share"] <= 1
        assert line["gflop_per_s"] > 0
        assert (line["dispatches"] is not None) == (line["engine"] == "gpu")
        assert (line["device_mb"] is not None) == (line["engine"] == "gpu")


def test_nothing_is_uploaded_and_eight_bytes_come_back(measured: Results) -> None:
    for line in measured.cases:
        if line["engine"] == "gpu" and line["case"].startswith(("train/", "logged/")):
            assert (line["uploaded_bytes"], line["downloaded_bytes"]) == (0, 8)


def test_what_does_not_fit_is_told(benches: list[Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise LimitError("Too large.")

    monkeypatch.setattr(runner, "open_contender", refuse)
    results = measure(TINY[:1], benches[2:], EFFORT)
    assert results.cases == []
    (skipped,) = results.skipped
    assert skipped == {"case": "train/tiny", "engine": "reference", "kind": "does not fit", "why": "Too large."}


def test_card_is_woken_after_other_engines() -> None:
    calls: list[str] = []

    @dataclass(kw_only=True)
    class Counted(Timed):
        def _repeat(self, count: int) -> None:
            calls.append(self.bench.name)

        def close(self) -> None: ...

    infos = {"cpu": EngineInfo("cpu", software=True), "gpu": EngineInfo("gpu")}
    runner._take_turns([Counted(bench=Bench(name, OtherEngine(info), 1.0)) for name, info in infos.items()], EFFORT)
    assert calls[-6:] == ["cpu", "gpu", "gpu"] * 2


@pytest.mark.parametrize(("cpu_ms", "engine"), [(1.0, "cpu"), (3.0, "gpu")])
def test_auto_uses_what_bench_measured(cpu_ms: float, engine: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path))
    card = OtherEngine(EngineInfo("gpu", "Quick 9000"))
    cases = {("train/tiny", "gpu"): 2.0, ("train/tiny", "cpu"): cpu_ms, ("batch/3", "cpu"): 1.0}
    results = Results({"cases": [made_up.line(case, ms, on) for (case, on), ms in cases.items()]})
    runner.keep_faster(TINY, [Bench("gpu", card, 1e9), Bench("cpu", open_engine("cpu"), 1e9)], results)
    (place,) = choose.PLACES.read().values()
    found = choose._remembered(Placement(cast(Engine, card)), TINY[0].config, 1)
    assert found is not None
    assert found.engine.info.engine == engine == place["selector"].partition(":")[0]
    assert found.reason.endswith(f"difflogic bench measured 2 ms per epoch on gpu, {cpu_ms:g} ms on cpu")


def test_what_computes_something_else_is_not_timed(benches: list[Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contender, "expected_losses", lambda *arguments: [1.0])
    results = measure(TINY[:1], benches[2:], EFFORT)
    assert (results.cases, results.lists("wrong")) == ([], True)
    with pytest.raises(WrongResultError, match=r"^the soft loss of epoch 1 is [\d.]+, expected 1$"):
        open_contender(TINY[0], benches[2])


@pytest.mark.parametrize("case", [TINY[0], TINY[2]], ids=["synchronous", "asynchronous"])
def test_the_forward_check_agrees_with_the_train_step(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = Circuit.initial(case.config.model, case.config.seed)
    job = make_job(case.config, circuit)
    state = TrainState.initial(job)
    whole = contender.expected_losses(case, job, state)
    assert len(whole) == 2
    monkeypatch.setattr(contender, "LARGE", 0)
    assert contender.expected_losses(case, job, state) == [pytest.approx(whole[0], rel=1e-6)]


def test_a_huge_case_is_checked_where_its_gradients_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    case = TINY[0]
    job = make_job(case.config, Circuit.initial(case.config.model, case.config.seed))
    state = TrainState.initial(job)
    monkeypatch.setattr("difflogic.devices.check_gradients.physical_memory", lambda: 1)
    first, _ = contender.expected_losses(case, job, state)
    assert contender.expected_losses(replace(case, once=True), job, state) == [pytest.approx(first, rel=1e-6)]


def test_a_population_starts_with_the_seed_of_the_case(benches: list[Bench]) -> None:
    alone, first = (open_contender(case, benches[1]) for case in (TINY[4], TINY[6]))
    assert len(first.model.states()) == TINY[6].models
    assert first.first_loss == alone.first_loss
    assert np.array_equal(first.model.states()[0].logits, alone.model.states()[0].logits)


@pytest.mark.parametrize(
    ("host", "kernels", "count", "line"),
    [
        (0.001, {"gate_backward": 0.7, "loss": 0.2}, 10, "kernel (89% of the step), mainly gate_backward (70%)"),
        (0.9, {"gate_backward": 0.1}, 10, "host encode (90% of the step)"),
        (0.0, {"gate_backward": 0.9}, 800, "dispatch gaps (80% of the step)"),
        (0.1, {"gate_backward": 0.2}, 10, "transfer (60% of the step)"),
    ],
)
def test_the_limiter(host: float, kernels: dict[str, float], count: int, line: str) -> None:
    parts = [ProfilePart(name, name, count // len(kernels), seconds) for name, seconds in kernels.items()]
    profile = Profile("gpu", "", 1.0, (*parts, ProfilePart("encode", "host", 1, host)))
    assert bottleneck(profile, 1e-3, 0.6 if line.startswith("transfer") else 0.0) == line


def test_engines_that_are_here() -> None:
    names = [bench.name for bench in open_benches([])]
    assert names == ["gpu", "cpu", "reference"]


@pytest.mark.exhaustive
def test_memory_is_that_of_the_case_alone() -> None:
    """Not of this process, which started the child: what it holds here would show."""
    ballast = np.ones(400 << 17)
    peak = peak_bytes("train/checkerboard-small", "cpu")
    assert peak is None or 10e6 < peak < ballast.nbytes
