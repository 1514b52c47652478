"""Presets as data for in-browser training: configuration, and the recorded GPU buffers and dispatches per stage.

Data that depend on the seed are omitted, so that the page can train any seed: with `seeded.js`, it computes wires,
initial logits, keys and random evaluation grids, bit for bit as in Python, and also the target of a drawing.
"""

import base64
import json
import re
from typing import Any

from difflogic.circuits.export import html
from difflogic.circuits.readers import zoo
from difflogic.circuits.synthesis import repair
from difflogic.config import presets, recipes, schedule
from difflogic.config.fields import hint
from difflogic.config.schema import Config
from difflogic.core import gates, wiring
from difflogic.engine import job as jobs
from difflogic.engine import search
from difflogic.engine.job import TrainState, make_job
from difflogic.errors import UsageError
from difflogic.gpu.plan import HISTORY
from difflogic.gpu.recording import RecordedBuffer, RecordedRun, record
from difflogic.gpu.shaders import load_source
from difflogic.gpu.submit import SUBMIT_SECONDS, Dispatch
from difflogic.model import circuit as circuits
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.statistics import DECIDED
from difflogic.train import restarts, stalled, success
from difflogic.version import __version__

Data = dict[str, Any]
PRESETS = ("checkerboard-small", "checkerboard", "game-of-life", "colored-g", "lizard")
"""Presets that a page can train; asynchronous presets are missing, since a page cannot sample fire masks."""
OWN = {"draw": 16, "draw-small": 12}
"""Mapping from tasks for a custom image to the side of their grid in cells; their model is that of colored-g."""
SMILE = (
    "............",
    "...333333...",
    "..33333333..",
    ".3333333333.",
    ".3343333433.",
    ".3333333333.",
    ".3333333333.",
    ".3133333313.",
    ".3311111133.",
    "..33333333..",
    "...333333...",
    "............",
)
"""Image of 12x12 cells that the page displays until the visitor draws."""
OWN_EPOCHS = 1200
"""Number of epochs per attempt for a custom image, fewer than for colored-g, since small images require fewer."""
UNGUIDED = 3.5
"""Factor by which a page delays local search for presets: training solves most presets before, and the page's search is
unguided and slower than training. Search for custom images is not delayed, and is followed by a repair."""
SEEDED = frozenset({"wires", "edges", "logits", "control"})
"""Names of buffers whose initial contents depend on the seed, besides random evaluation grids."""


def names() -> list[str]:
    """Return the names of all tasks that a page supports; a page opens with the first by default."""
    return [*OWN, *PRESETS]


def page_config(name: str, white: bool = False) -> Config:
    """Return the configuration of task `name` with the recipe `robust`, which a page trains until solved.

    Its wiring is fixed, since a page cannot train it. `white` is for custom images with only white cells. Raises
    UsageError for an unsupported name.
    """
    if name not in names():
        raise UsageError(f"Unsupported preset {name!r}{hint(name, names())}: expected {', '.join(names())}.")
    config = recipes.applied("robust", _own(OWN[name], white) if name in OWN else presets.get(name))
    begin, interval = config.search.begin, min(restarts.LOOK, config.train.eval_interval)
    if name not in OWN:
        begin = round(UNGUIDED * begin)
    return config.with_(model={"candidates": 1}, train={"eval_interval": interval}, search={"begin": begin})


def _own(side: int, white: bool = False) -> Config:
    """Return the configuration for a custom image of `side` x `side` cells, at first SMILE; one channel if `white`."""
    above = (side - len(SMILE)) // 2
    rows = tuple(row.center(side, ".") for row in SMILE)
    empty = "." * side
    picture = ((empty,) * above + rows + (empty,) * side)[:side]
    one_channel = {"loss_channels": 1, "picture": tuple(re.sub("[1-7]", "1", row) for row in picture)} if white else {}
    return presets.get("colored-g").with_(
        task={"picture": picture, "height": side, "width": side} | one_channel, train={"epochs": OWN_EPOCHS}
    )


def page_data(chosen: list[str]) -> Data:
    """Return all JSON data of a page for the tasks named in `chosen`. Raises UsageError or LimitError."""
    data = {name: preset_data(name) for name in chosen}
    kernels = {
        kernel
        for preset in [*data.values(), *(data[name]["white"] for name in chosen if name in OWN)]
        for stage in preset["stages"]
        for plan in stage["plans"].values()
        for kernel, _ in plan["pipelines"]
    }
    return {
        "difflogic": __version__,
        "kernels": {
            name: {"code": load_source(name).text, "access": [binding.access for binding in load_source(name).bindings]}
            for name in sorted(kernels)
        },
        "presets": data,
        "gate_names": list(gates.NAMES),
        "constants": _constants(),
        "recorded": _recorded_board(),
    }


def _recorded_board() -> Data:
    """Return the data of the zoo's checkerboard circuit, which a page runs if the browser cannot train."""
    board = zoo.entry("checkerboard")
    netlist = netlist_json.from_data(board["circuit"])
    task = board["circuit"]["habitat"] | {"target": "checkerboard", "loss_channels": netlist.visible}
    circuit = {"channels": netlist.channels, "periodic": netlist.periodic, "outputs": netlist.outputs.tolist()}
    return {**circuit, "rows": html.rows(netlist), "task": task, "text": board["text"]}


def _constants() -> Data:
    """Return the constants of the Python code, by name, that the page's scripts also use."""
    modules = {
        circuits: ("NOISE_STREAM",),
        wiring: ("ALL_ROUND_STREAM", "RING", "BEGINNINGS", "STRAIGHT", "ALL_ROUND_KERNELS"),
        jobs: ("PROBE_STREAM",),
        search: ("STEADY", "FEW"),
        success: ("STARTS", "FRESH_STREAM", "TIMES", "LARGE"),
        stalled: ("HOPELESS", "PROGRESS", "MEAN_OF"),
        repair: ("MOST_WRONG", "TOGETHER"),
    }
    constants = {name: getattr(module, name) for module, names in modules.items() for name in names}
    return constants | {
        "RESTART_STREAM": schedule.STREAM,
        "SEARCH_STREAM": search.STREAM,
        "HISTORY": HISTORY,
        "SUBMIT_SECONDS": SUBMIT_SECONDS,
        "DECIDED": DECIDED,
    }


def preset_data(name: str, white: bool = False) -> Data:
    """Return a task's configuration and its training stages per kind of adapter; see `page_config` for `white`."""
    config = page_config(name, white)
    circuit = Circuit.initial(config.model, config.seed, config.initial)
    netlist = CellNetlist.of_run(circuit, config)
    ends = (*config.growth.until, config.search.begin or config.epochs)
    return {
        "name": name,
        "own": name in OWN,
        "white": preset_data(name, white=True) if name in OWN and not white else None,
        "random": config.task.start == "random",
        "config": config.to_dict(),
        "toml": config.to_toml(),
        "head": json.dumps(netlist_json.head(netlist))[:-1],
        "first_look": stalled.first_look(config, config.epochs),
        "stages": [_stage(schedule.at_stage(config, stage), until) for stage, until in enumerate(ends)],
    }


def _stage(config: Config, until: int) -> Data:
    task = config.task
    plans = {kind: plan_data(recorded(config, kind == "software"), config) for kind in ("hardware", "software")}
    return {"until": until, "height": task.height, "width": task.width, "steps": task.steps, "plans": plans}


def recorded(config: Config, software: bool) -> RecordedRun:
    """Record the buffers and dispatches of training a configuration on a hardware GPU, or a `software` GPU."""
    job = make_job(config, Circuit.initial(config.model, config.seed, config.initial))
    return record([job], [TrainState.initial(job)], software)


def plan_data(run: RecordedRun, config: Config) -> Data:
    """Convert a recorded run to JSON data that refer to buffers, pipelines and bind groups by number."""
    device, plan = run.device, run.plan
    seeded = SEEDED | ({"words"} if config.task.start == "random" else set())
    places = {id(buffer): number for number, buffer in enumerate(device.buffers)}
    groups = {id(group): number for number, group in enumerate(device.groups)}
    pipelines = {pipeline: number for number, pipeline in enumerate(device.pipelines)}

    def listed(dispatches: list[Dispatch]) -> list[list[int]]:
        return [
            [pipelines[item.pipeline], groups[id(item.bind_group)], item.x, item.y, item.work] for item in dispatches
        ]

    return {
        "buffers": [[item.name, item.size, item.usage, _contents(item, seeded)] for item in device.buffers],
        "pipelines": [[item.kernel, dict(item.constants)] for item in device.pipelines],
        "groups": [
            [group.kernel, [[places[id(part.buffer)], part.offset, part.size] for part in group.bound]]
            for group in device.groups
        ],
        "init": listed(run.init),
        "train_step": listed(run.train_step),
        "evaluation": listed(run.evaluation),
        "split": plan.launch.split_chunks,
        "every_slot": max(wiring.slot_count for wiring in plan.wirings),
        **{name: getattr(plan, name) for name in ("most_work", "slots", "chunks", "probes", "probe_groups")},
        "batch": plan.shape.batch,
        "states": [plan.state_slot(step) for step in range(plan.shape.steps + 1)],
    }


def _contents(buffer: RecordedBuffer, seeded: frozenset[str]) -> str | bool | None:
    """Return a buffer's contents in Base64, True if the page computes them from the seed, or None for zeros."""
    if buffer.name in seeded and buffer.contents is not None:
        return True
    if buffer.contents is None or not any(buffer.contents):
        return None
    return base64.b64encode(buffer.contents).decode()
