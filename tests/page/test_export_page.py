"""The file that trains: what it holds and records, how large it is, and how it is asked for."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflogic
from difflogic.circuits.export.drawing import SYMBOLS
from difflogic.circuits.export.text import template
from difflogic.cli.main import main
from difflogic.config import presets, recipes
from difflogic.engine.job import TrainState, make_job
from difflogic.errors import DeviceError, LimitError, UsageError
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.model import GpuModel
from difflogic.gpu.planner import plan_for
from difflogic.gpu.recording import DEFAULT_LIMITS, RecordingDevice, record
from difflogic.gpu.shaders import Source
from difflogic.gpu.submit import Dispatch
from difflogic.model.circuit import Circuit
from difflogic.page import plans
from difflogic.page.bundle import joined
from difflogic.page.export import training_page
from difflogic.page.plans import page_config, recorded
from tests.gpu.rig import on_device
from tests.jobs import make_job as small_job
from tests.jobs import start
from tests.sampled import sampled
from tests.tasks import TASKS, task_job

MOST = 250_000
"""Bytes of a page with all presets, as a server sends it."""
MOST_OF_SCRIPTS = 200_000
"""Characters of all scripts that stand around what trains, before anything packs them."""


def test_page_with_all_presets_is_small_and_opens_on_own_image() -> None:
    assert len(gzip.compress(training_page().encode())) < MOST
    assert plans.names()[0] in plans.OWN


def test_drawings_name_gates_alike() -> None:
    (text,) = re.findall(r"const SYMBOLS = \{\n(.*?),\n\};", template("drawing.js"), re.DOTALL)
    symbols = json.loads(re.sub(r"(\d+):", r'"\1":', f"{{{text}}}"))
    assert {int(gate): (name, tuple(inverted)) for gate, (name, inverted) in symbols.items()} == SYMBOLS


def test_it_is_the_same_file_each_time_and_names_no_other() -> None:
    page = training_page(["checkerboard-small", "draw-small"])
    assert page == training_page(["checkerboard-small", "draw-small"])
    elsewhere = r"(?:src|href)=\"(?!data:)|url\(|https?://(?!www\.w3\.org/2000/svg)|\bfetch\(|\bimport\("
    assert not re.search(elsewhere, page)


@pytest.mark.parametrize("entry", ["page/face.js", "serve/web/main.js"])
def test_scripts_are_joined_into_one_that_imports_none(entry: str) -> None:
    script = joined(entry)
    assert not re.search(r"^(import|export)\b|</script|<!--", script, re.MULTILINE)
    for path in (Path(difflogic.__file__).parent / "serve" / "web").glob("*.js"):
        assert script.count(path.read_text(encoding="utf-8").partition("\n")[0]) in ({1} if "web" in entry else {0, 1})
    assert len(script) < MOST_OF_SCRIPTS


@pytest.mark.parametrize("name", plans.PRESETS)
def test_it_trains_by_the_numbers_of_the_command(name: str) -> None:
    expected = recipes.applied("robust", presets.get(name)).with_(train={"eval_interval": 10})
    later = round(plans.UNGUIDED * expected.search.begin)
    assert plans.page_config(name) == expected.with_(model={"candidates": 1}, search={"begin": later})


@pytest.mark.parametrize(("name", "side"), plans.OWN.items())
def test_a_visitors_picture_is_searched_as_early_as_by_the_command(name: str, side: int) -> None:
    assert plans.page_config(name) == recipes.applied("robust", plans._own(side)).with_(train={"eval_interval": 10})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["cartpole"], "Unsupported preset 'cartpole'"),
        (["lizzard"], "did you mean lizard"),
        ([], "Expected one or more different presets, got none"),
        (["draw", "draw"], "different presets, got draw, draw"),
    ],
)
def test_what_it_cannot_hold_is_refused(given: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        difflogic.training_page(given)


def test_the_command_writes_it_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.html"
    assert main(["export-page", "draw-small", "--out", str(file)]) == 0
    assert file.read_text() == training_page(["draw-small"])
    assert re.search(r"page\.html: \d+ kB, \d+ kB compressed", capsys.readouterr().out)
    assert main(["export-page", "game-of-life", "--out", str(file)]) == 2
    assert "--force" in capsys.readouterr().err


class Watched(GpuDevice):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__(select_adapter())
        self.made: list[Any] = []
        self.bound: list[tuple[str, list[tuple[int, int, int]]]] = []

    def _create(self, name: str, size: int, usage: int) -> Any:
        self.made.append(super()._create(name, size, usage))
        return self.made[-1]

    def bind(self, source: Source, buffers: dict[str, Any]) -> Any:
        parts = []
        for binding in source.bindings:
            given = buffers[binding.name]
            buffer, offset, size = given if isinstance(given, tuple) else (given, 0, given.size)
            parts.append((next(n for n, each in enumerate(self.made) if each is buffer), offset, size))
        self.bound.append((source.name, parts))
        return super().bind(source, buffers)


def shape_of(dispatches: Sequence[Dispatch]) -> list[tuple[Any, ...]]:
    return [(each.kernel, each.x, each.y, each.work) for each in dispatches]


@pytest.mark.parametrize("name", sampled(["the board", *TASKS], {"the board", "everything"}))
def test_it_is_what_a_device_is_given(name: str) -> None:
    job = small_job() if name == "the board" else task_job(name)
    run = record([job], [TrainState.initial(job)], software=True)
    watched = Watched()
    with closing(GpuModel(watched, [job], run.plan)) as model:
        model.fill([TrainState.initial(job)])
        lists = (model.workspace.coefficients, model.train_step, model.workspace.evaluation)
        expected = (run.init, run.train_step, run.evaluation)
        assert [shape_of(each) for each in lists] == [shape_of(each) for each in expected]
        recorded = run.device.buffers
        assert [(each.label, each.size) for each in watched.made] == [(each.name, each.size) for each in recorded]
        places = {id(buffer): number for number, buffer in enumerate(recorded)}
        assert watched.bound == [
            (group.kernel, [(places[id(part.buffer)], part.offset, part.size) for part in group.bound])
            for group in run.device.groups
        ]
        for made, expected in zip(list(watched.made), recorded, strict=True):
            if expected.usage != "staging":
                held = bytes(expected.contents or bytes(expected.size))
                assert watched.download(made, np.uint8, "test").tobytes() == held, expected.name


def test_groups_are_of_the_pipelines_that_they_run_with() -> None:
    run = record([small_job()], [start(small_job())], software=False)
    for each in (*run.init, *run.train_step, *run.evaluation):
        assert each.pipeline in run.device.pipelines
        assert each.bind_group.kernel == each.pipeline.kernel == each.kernel


def test_it_computes_nothing_and_says_so() -> None:
    job = small_job()
    with pytest.raises(DeviceError, match="got a recording, which cannot compute"):
        on_device(RecordingDevice(software=True), [job], [start(job)])


@pytest.mark.parametrize("software", [True, False])
def test_it_is_planned_for_default_limits(software: bool) -> None:
    config = page_config("lizard")
    run = recorded(config, software)
    assert max(each.size for each in run.device.buffers) <= DEFAULT_LIMITS["max-storage-buffer-binding-size"]
    small = RecordingDevice(software, limits=DEFAULT_LIMITS | {"max-storage-buffer-binding-size": 1 << 16})
    job = make_job(config, Circuit.initial(config.model, config.seed, config.initial))
    with pytest.raises(LimitError, match="this device binds at most 0"):
        plan_for(small, [job])


def test_it_needs_no_gpu() -> None:
    draws = "from difflogic.page.plans import page_data; page_data(['draw'])"
    subprocess.run([sys.executable, "-c", f"import sys; {draws}; assert 'wgpu' not in sys.modules"], check=True)
