"""The page in Chromium: what it makes of a seed, what it trains to, and what it hands over."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflogic.circuits.synthesis.invariant import start_of
from difflogic.cli.main import main
from difflogic.config import schedule
from difflogic.config.limits import MOST
from difflogic.config.schedule import seed_of
from difflogic.core.neighbourhoods import neighbourhoods
from difflogic.devices.open import open_engine, open_local_search
from difflogic.engine import search
from difflogic.engine.job import fixed_target, make_job
from difflogic.gpu.workspace import to_chunks
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.page.export import training_page
from difflogic.page.plans import page_config, recorded
from difflogic.runs.journal import Row
from difflogic.train import stalled
from difflogic.train.success import LARGE, SuccessTest
from tests.programs import needs
from tests.serve.chromium import Page, chromium

SHOWN = ("checkerboard-small", "game-of-life", "draw-small", "lizard")
SEEDS = (0, 23, 2454137663)
EPOCHS = 10
SEED = 7
ICD = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
"""The driver that Chromium computes with, which wgpu can load as well."""

TRAINED = """
import json, sys
import numpy as np
from difflogic.config import schedule
from difflogic.engine.job import TrainState, make_job
from difflogic.gpu.engine import GpuEngine
from difflogic.model.circuit import Circuit
from difflogic.page.plans import page_config
config = schedule.at_stage(page_config("checkerboard-small").with_(seed=int(sys.argv[1])), 0)
job = make_job(config, Circuit.initial(config.model, config.seed, config.initial))
model = GpuEngine.on().open([job], [TrainState.initial(job)])
model.train(int(sys.argv[2]))
losses = [row.soft_loss for row in model.fetch_metrics()[0]]
print(json.dumps({"losses": losses, "logits": model.states()[0].logits.view(np.uint32).ravel().tolist()}))
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    needs("chromium")
    file = tmp_path_factory.mktemp("page") / "train.html"
    file.write_text(training_page(SHOWN))
    with chromium(webgpu=True) as browser:
        page = browser.page()
        page.call("Network.enable")
        page.goto(file.as_uri())
        # Names of a script are seen by what is evaluated on its page, but only what is set on `window` stays.
        page.js("readPlans().then((plans) => { window.plans = plans; })")
        page.js("openDevice().then((device) => { window.opened = device; })")
        yield page
        asked = [
            each["params"]["request"]["url"] for each in browser.heard if each["method"] == "Network.requestWillBeSent"
        ]
        assert [each for each in asked if not each.startswith(("data:", "blob:"))] == [file.as_uri()]
        assert page.problems() == []


@pytest.fixture(scope="module")
def trained(page: Page) -> dict[str, Any]:
    """After some epochs on the smaller grid: losses, and what the page hands over."""
    options = f"seed: {SEED}, onEvent: (event) => {{ if (event.kind === 'epochs') losses.push(...event.losses); }}"
    return json.loads(
        page.js(
            f"""(async () => {{
            const losses = [], run = new Trainer(opened, plans, "checkerboard-small", {{ {options} }});
            await run.open();
            run.begin({SEED});
            const {{ mapAsync }} = GPUBuffer.prototype, read = [];
            let sent = 0;
            opened.queue.writeBuffer = () => sent++;
            GPUBuffer.prototype.mapAsync = function (...all) {{ read.push(all[2]); return mapAsync.apply(this, all); }};
            await run.toEpoch({EPOCHS});
            delete opened.queue.writeBuffer;
            GPUBuffer.prototype.mapAsync = mapAsync;
            const hard = await run.circuit();
            const logits = Array.from(new Uint32Array(await run.model.download("logits")));
            const seen = await run.look(), converged = await run.converged();
            const whole = new Float32Array(await run.model.download("states"));
            const found = {{ losses, logits, read, sent, converged,
                json: hard.json(), config: hard.config(), states: Array.from(whole),
                soft: seen.soft.map((each) => Array.from(each)), start: Array.from(seen.start) }};
            await run.close();
            return JSON.stringify(found);
            }})()"""
        )
    )


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_begins_with_the_same_bits(page: Page, name: str, seed: int) -> None:
    found = json.loads(
        page.js(
            f"""(() => {{
            const preset = plans.presets["{name}"], plan = preset.stages[0].plans.hardware, stage = preset.stages[0];
            const drawn = initialCircuit(preset.config, {seed}, plans.constants), {{ model }} = preset.config;
            const tables = kernelTables(flatLayout(model, drawn), plan);
            const task = {{ ...preset.config.task, height: stage.height, width: stage.width }};
            const probes = preset.random ? drawProbes({{ ...preset.config, task }}, {seed}, plans.constants) : [];
            const words = packGrids(probes, stage.height * stage.width * model.channels);
            return JSON.stringify({{ logits: Array.from(new Uint32Array(drawn.logits.buffer)),
                wires: Array.from(tables.wires), edges: Array.from(tables.edges), words: Array.from(words),
                second: foldIn(keyFromSeed({seed}), plans.constants.RESTART_STREAM)[1] }});
            }})()"""
        )
    )
    config = schedule.at_stage(page_config(name).with_(seed=seed), 0)
    run = recorded(config, software=False)
    expected = {each.name: bytes(each.contents) for each in run.device.buffers if each.contents is not None}
    for buffer in ("logits", "wires", "edges"):
        assert np.array(found[buffer], np.uint32).tobytes() == expected[buffer], buffer
    if found["words"]:
        words = np.array(found["words"], np.uint32).reshape(-1, config.model.channels)
        assert to_chunks(words, run.plan.hard_chunks).tobytes() == expected["words"]
    assert found["second"] == seed_of(seed, 1)


def test_it_trains_to_the_bits_of_the_gpu_engine_on_the_same_driver(trained: dict[str, Any]) -> None:
    """Another compiler, Tint and not naga, and another program that submits: only the driver is the same."""
    if not ICD.exists():
        pytest.skip("this Chromium keeps its software driver elsewhere")
    environment = {**os.environ, "VK_DRIVER_FILES": str(ICD), "VK_ICD_FILENAMES": str(ICD)}
    command = [sys.executable, "-c", TRAINED, str(SEED), str(EPOCHS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    expected = json.loads(done.stdout)
    assert {name: trained[name] for name in expected} == expected


def test_eight_bytes_are_read_in_an_epoch_and_none_sent(trained: dict[str, Any]) -> None:
    assert (sum(trained["read"]), trained["sent"]) == (8 * EPOCHS, 0)


def test_what_it_hands_over_is_what_it_trained(trained: dict[str, Any], tmp_path: Path) -> None:
    config = page_config("checkerboard-small").with_(seed=SEED)
    assert trained["config"] == config.to_toml()
    logits = np.array(trained["logits"], np.uint32).view(np.float32).reshape(-1, 16)
    circuit = Circuit.initial(config.model, SEED, config.initial).with_logits(logits)
    netlist = CellNetlist.of_run(circuit, config)
    assert trained["json"] == netlist_json.to_json(netlist)
    # What it showed: both grow from the first sample's start.
    soft = np.array(trained["soft"]).reshape(-1, 8, 8, 1)
    states = np.array(trained["states"]).reshape(len(soft), -1, 8, 16).swapaxes(2, 3).reshape(len(soft), -1, 8)
    assert np.array_equal(states[0, :64].ravel(), trained["start"])
    assert np.array_equal(states[:, :64, 0].reshape(soft.shape), soft)


@pytest.mark.parametrize(
    "command",
    [["simulate"], ["simplify", "--out", "OUT"], ["export", "--format", "c", "--out", "OUT"], ["prove", "IN"]],
)
def test_every_command_takes_the_circuit(trained: dict[str, Any], tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "circuit.json"
    file.write_text(trained["json"])
    names = {"OUT": str(tmp_path / "out"), "IN": str(file)}
    assert main([command[0], str(file), *(names.get(each, each) for each in command[1:])]) == 0


def test_the_visitors_picture_is_the_target(page: Page) -> None:
    """One that is drawn is uploaded as Python uploads the same, and training begins with the same loss."""
    config = page_config("draw-small")
    picture = [row[::-1] for row in config.task.picture]
    drawn = page.js(
        f"""(async () => {{
        const run = new Trainer(opened, plans, "draw-small", {{ picture: {json.dumps(picture)} }});
        await run.open();
        run.begin(23);
        const bytes = async (name) => Array.from(new Uint8Array(await run.model.download(name)));
        const found = [await bytes("targets"), await bytes("hard_targets"), (await run.circuit()).config()];
        await run.close();
        return found;
        }})()"""
    )
    own = config.with_(task={"picture": picture})
    expected = {each.name: each.contents for each in recorded(own, software=True).device.buffers}
    for name, found in zip(("targets", "hard_targets"), drawn, strict=False):
        assert bytes(found) == bytes(expected[name] or b""), name
    assert drawn[2] == own.to_toml()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["checkerboard-small", "game-of-life", "draw-small"])
def test_it_solves_a_preset(page: Page, name: str) -> None:
    page.js(
        f"""(() => {{ window.told = []; window.done = null;
        const {{ picture }} = plans.presets["{name}"].config.task;
        const run = new Trainer(opened, plans, "{name}", {{ picture, onEvent: (event) => told.push(event) }});
        run.train().then((solved) => (window.done = solved), (error) => (window.done = String(error))); }})()"""
    )
    page.wait("done !== null", seconds=1800)
    assert page.js("done") is True
    assert page.js("told.filter((event) => event.kind === 'evaluation').at(-1).wrong") == 0


WAYS = """(async () => {
    const found = [], onEvent = (event) => found.push(event);
    const run = new Trainer(WHERE, plans, "game-of-life", { seed: 5, onEvent });
    const until = async (is) => { while (!is()) await new Promise((resolve) => setTimeout(resolve, 10)); };
    const ended = run.train().catch((error) => error);
    BODY
    return JSON.stringify({ kinds: found.map((event) => event.kind), state: run.state, RESULT });
})()"""


def played(page: Page, body: str, result: str = "", where: str = "opened") -> dict[str, Any]:
    found = page.js(WAYS.replace("WHERE", where).replace("BODY", body).replace("RESULT", result))
    return dict(json.loads(found))


def test_it_pauses_goes_on_and_begins_again_with_another_seed(page: Page) -> None:
    found = played(
        page,
        """await until(() => run.state.epoch > 1);
        run.pause();
        await run.look();
        const held = run.state.epoch;
        await new Promise((resolve) => setTimeout(resolve, 500));
        const still = run.state.epoch;
        run.restart(9);
        await until(() => found.some((event) => event.kind === "restarted"));
        await until(() => run.state.seed === 9 && run.state.epoch === 0);
        run.resume();
        await until(() => run.state.epoch > 1);
        const going = run.state.seed;
        await run.close();""",
        "held, still, going, solved: await ended",
    )
    assert found["held"] == found["still"] > 1
    assert found["going"] == 9
    assert found["solved"] is False
    assert [each for each in found["kinds"] if each in ("attempt", "paused", "restarted", "resumed")] == [
        "attempt", "paused", "restarted", "attempt", "resumed",
    ]  # fmt: skip


def test_in_the_background_it_waits(page: Page) -> None:
    found = played(
        page,
        """const show = (value) => {
            Object.defineProperty(document, "visibilityState", { value, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        };
        await until(() => run.state.epoch > 1);
        show("hidden");
        await until(() => found.some((event) => event.kind === "hidden"));
        const held = run.state.epoch;
        await new Promise((resolve) => setTimeout(resolve, 300));
        const still = run.state.epoch;
        show("visible");
        await until(() => run.state.epoch > held);
        delete document.visibilityState;
        await run.close();""",
        "held, still",
    )
    assert found["held"] == found["still"]
    assert "visible" in found["kinds"]


def test_a_lost_device_is_told_in_a_sentence(page: Page) -> None:
    found = played(
        page,
        "await until(() => run.state.epoch > 1); run.device.handle.destroy();",
        "kind: (await ended).kind, said: (await ended).message",
        where="await openDevice()",
    )
    assert found["kind"] == "lost"
    assert found["said"].endswith("reload the page to train again.")


def test_memory_that_is_not_there_is_told_in_a_sentence(page: Page) -> None:
    said = page.js(
        """opened.within(() => {
            for (let i = 0; i < 2; i++) opened.handle.createBuffer({ size: 268435456 * (i + 1), usage: 128 });
        }).then(() => "nothing", (error) => error.kind + ": " + error.message)"""
    )
    assert said.startswith(("memory: The graphics card has not enough", "validation: This browser refuses a part"))


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ("undefined", "no-webgpu: This browser has no WebGPU, or has it switched off"),
        ("{ requestAdapter: async () => null }", "no-adapter: This browser has WebGPU, but found no graphics card"),
        (
            "{ requestAdapter: async () => ({ requestDevice: async () => { throw new Error('too small'); } }) }",
            "limits: The graphics card grants less than WebGPU's usual limits: too small.",
        ),
    ],
)
def test_without_a_device_the_reason_is_told(page: Page, gpu: str, said: str) -> None:
    found = page.js(
        f"""(async () => {{
        Object.defineProperty(navigator, "gpu", {{ value: {gpu}, configurable: true }});
        try {{ await openDevice(); }} catch (error) {{ return error.kind + ": " + error.message; }}
        finally {{ delete navigator.gpu; }}
        }})()"""
    )
    assert found.startswith(said)


@pytest.mark.parametrize("name", ["checkerboard-small", "game-of-life", "draw-small", "lizard"])
def test_it_gives_up_when_the_command_does(page: Page, name: str) -> None:
    """Losses that fall, stand still, rise or are no numbers, looked at wherever an evaluation is due."""
    config = page_config(name)
    epochs, interval = config.epochs, config.train.eval_interval
    draw, scale = np.random.default_rng(4), 200 if config.search.begin else 60
    given, expected = [], []
    for _ in range(60):
        end = interval * int(draw.integers(1, epochs // interval + 1))
        fall, floor = draw.uniform(0.1, 30) / epochs, draw.uniform(0, 1.2)
        losses = scale * np.maximum(np.exp(-fall * np.arange(end)), floor) * draw.uniform(0.98, 1.02, end)
        if draw.random() < 0.1:
            losses[-3] = np.nan
        wrong = draw.integers(0, 50, end // interval).tolist()
        rows = [
            Row(n, loss, None, wrong[n // interval - 1] if n % interval == 0 else None, None, None, 0.0, False)
            for n, loss in enumerate(losses.tolist(), start=1)
        ]
        judged = [{"epoch": row.epoch, "wrong": row.hard_loss} for row in rows if row.hard_loss is not None]
        given.append([[None if np.isnan(loss) else loss for loss in losses], judged])
        why = stalled.why(rows, MOST, epochs, config) or ""
        expected.append([why, bool(judged) and stalled.is_milestone(rows, config)])
    found = page.js(
        f"""{json.dumps(given)}.map(([losses, judged]) => {{
        const preset = plans.presets["{name}"], numbers = plans.constants;
        return [whyStalled(preset, losses.map((each) => each ?? NaN), judged, numbers),
            isMilestone(preset, judged)]; }})"""
    )
    assert found == expected
    assert len({why for why, _ in expected}) > 1


def test_a_circuit_is_tested_on_the_starts_of_the_command(page: Page, trained: dict[str, Any]) -> None:
    config = page_config("checkerboard-small").with_(seed=SEED)
    logits = np.array(trained["logits"], np.uint32).view(np.float32).reshape(-1, 16)
    circuit = Circuit.initial(config.model, SEED, config.initial).with_logits(logits)
    test = SuccessTest(open_engine("reference"), config)
    expected = [test.wrong(circuit, test._draw(side, side, count=2)[:1], 20)[0] for side in (16, LARGE)]
    found = page.js(
        f"""(async () => {{
        const preset = plans.presets["checkerboard-small"], {{ model, task }} = preset.config;
        const layout = flatLayout(model, initialCircuit(preset.config, {SEED}, plans.constants));
        const hard = new HardCircuit(preset, layout, {circuit.flat_logits().argmax(axis=1).tolist()}, {SEED}, [], []);
        return [16, plans.constants.LARGE].map((side) => {{
            const key = foldIn(foldIn(keyFromSeed({SEED}), plans.constants.FRESH_STREAM), side), each = side * side * 8;
            return hard.wrong(coinFlips(key, 2 * each).subarray(0, each), targetOf(task, side, side), side, side, 20);
        }});
        }})()"""
    )
    assert found == expected
    assert all(expected)


@pytest.mark.parametrize("name", ["draw-small", "lizard"])
def test_the_search_changes_the_same_gates(page: Page, name: str) -> None:
    """From a circuit with random functions here and there, for some epochs."""
    config = page_config(name).with_(seed=SEED)
    circuit = Circuit.initial(config.model, SEED, config.initial)
    draw = np.random.default_rng(6)
    gates = circuit.flat_logits().argmax(axis=1)
    places = draw.integers(0, len(gates), 300)
    gates[places] = draw.integers(0, 16, len(places))
    begun = gates.copy()
    job = make_job(config, circuit)
    local_search, costs = open_local_search(job), search.fresh_costs(config, 1)
    for epoch in (1, 2, 3):
        local_search.search(gates, costs, search.draw(SEED, epoch, search.ROUNDS), True)
    found = page.js(
        f"""(async () => {{
        const preset = plans.presets["{name}"], {{ model }} = preset.config;
        const layout = flatLayout(model, initialCircuit(preset.config, {SEED}, plans.constants));
        const made = new LocalSearch(preset, layout, {SEED}, plans.constants);
        const gates = Uint8Array.from({begun.tolist()}), first = made.wrong(gates, [])[0];
        for (const epoch of [1, 2, 3]) await made.search(gates, epoch);
        return [Array.from(gates), Array.from(made.costs), Array.from(first)];
        }})()"""
    )
    assert found[2] == local_search.wrong(begun).reshape(-1).astype(int).tolist()
    assert found[0] == gates.tolist() != begun.tolist()
    assert found[1] == costs.reshape(-1).tolist()


REPAIRED = """(() => {
    const preset = plans.presets["NAME"], { model, task } = preset.config, { channels } = model;
    const layout = flatLayout(model, initialCircuit(preset.config, SEED, plans.constants));
    const hard = new HardCircuit(preset, layout, GATES, SEED, preset.own ? task.picture : [], plans.gate_names);
    const search = new LocalSearch(preset, layout, SEED, plans.constants), { height, width, steps } = task;
    const last = hard.rollout(search.start, height, width, steps).at(-1), seen = task.loss_channels;
    search.target = search.target.map((_, i) => last[Math.floor(i / seen) * channels + (i % seen)]);
    for (const place of PLACES) search.target[place] ^= 1;
    const target = Array.from(search.target), made = repairs(hard, search, plans.constants);
    if (!made) return JSON.stringify({ made, target });
    hard.extend(made);
    const wrong = hard.wrong(search.start, search.target, height, width, steps);
    return JSON.stringify({ made, target, wrong, json: hard.json() });
})()"""


def mixed(name: str) -> tuple[CellNetlist, list[int]]:
    """A circuit for a preset with functions at random here and there, and these."""
    config = page_config(name).with_(seed=SEED)
    draw = np.random.default_rng(6)
    circuit = Circuit.initial(config.model, SEED, config.initial)
    gates = circuit.flat_logits().argmax(axis=1)
    gates[draw.integers(0, len(gates), 300)] = draw.integers(0, 16, 300)
    plain = circuit.with_logits(np.eye(16, dtype=np.float32)[gates])
    return CellNetlist.of_run(plain, config), gates.tolist()


def repaired(page: Page, name: str, places: list[int]) -> dict[str, Any]:
    """Return the result of repairing a circuit whose image is right except at these places."""
    text = REPAIRED.replace("NAME", name).replace("SEED", str(SEED)).replace("PLACES", json.dumps(places))
    return dict(json.loads(page.js(text.replace("GATES", json.dumps(mixed(name)[1])))))


@pytest.mark.parametrize("name", ["draw-small", "lizard"])
def test_a_few_wrong_values_are_set_right(page: Page, name: str) -> None:
    """In the page, and in Python from what it hands over; at no earlier step anything changes."""
    task, (before, _) = page_config(name).task, mixed(name)
    visible, start = task.loss_channels, start_of(before)[None]
    states = before.rollout(start, task.steps)[:, 0]
    kinds = neighbourhoods(states[:-1], before.periodic, before.neighbourhood)
    alone = np.flatnonzero(np.bincount(kinds)[kinds[-task.height * task.width :]] == 1)
    found = repaired(page, name, (visible * alone[[0, 7, -1]]).tolist())
    assert found["wrong"] == 0
    assert found["made"]["rows"]
    shown = netlist_json.from_json(found["json"]).rollout(start, task.steps)[:, 0, ..., :visible]
    assert np.array_equal(shown[-1].reshape(-1), found["target"])
    assert np.array_equal(shown[:-1], states[:-1, ..., :visible])
    assert (shown[-1] != states[-1, ..., :visible]).sum() == 3


def test_what_cannot_be_told_apart_or_is_too_much_is_not_repaired(page: Page) -> None:
    """The corner is as dark as its neighbours, and sees what they see."""
    assert repaired(page, "draw-small", [0])["made"] is None
    values = math.prod(fixed_target(page_config("draw-small").task).shape)
    assert repaired(page, "draw-small", list(range(0, values, 40)))["made"] is None


def test_an_attempt_ends_where_what_its_search_leaves_is_repaired(page: Page) -> None:
    """The search leaves two mismatches, which are repaired in fewer epochs than a first look for early stopping."""
    before, gates = mixed("draw-small")
    config, start = page_config("draw-small"), start_of(before)[None]
    states = before.rollout(start, config.task.steps)[:, 0]
    kinds = neighbourhoods(states[:-1], before.periodic, before.neighbourhood)
    alone = np.flatnonzero(np.bincount(kinds)[kinds[-config.task.height * config.task.width :]] == 1)
    target = states[-1, ..., : config.task.loss_channels].copy().reshape(-1)
    target[config.task.loss_channels * alone[[0, -1]]] ^= 1
    found = json.loads(
        page.js(
            f"""(async () => {{
            const {{ picture }} = plans.presets["draw-small"].config.task, told = [];
            const onEvent = (event) => told.push(event);
            const run = new Trainer(opened, plans, "draw-small", {{ seed: {SEED}, picture, onEvent }});
            run.begin = function (seed) {{
                Trainer.prototype.begin.call(this, seed);
                this.gates = Uint8Array.from({gates});
                this.search.target = Uint8Array.from({target.tolist()});
            }};
            run.toEpoch = async function (stop) {{
                while (this.losses.length < stop) this.losses.push(0);
                this.state.epoch = stop;
            }};
            const solved = await run.train(), json = (await run.circuit()).json(), {{ state }} = run;
            await run.close();
            return JSON.stringify({{ solved, json, state, told }});
            }})()"""
        )
    )
    assert found["solved"]
    assert found["state"]["solved"]
    *_, last, mended, right, solved = found["told"]
    assert (last["wrong"], mended["kind"], right["wrong"], solved["kind"]) == (2, "repaired", 0, "solved")
    assert solved["attempt"] == 1
    assert 0 < solved["epoch"] - config.search.begin < stalled.first_look(config, config.epochs)
    shown = netlist_json.from_json(found["json"]).rollout(start, config.task.steps)[-1, 0]
    assert np.array_equal(shown[..., : config.task.loss_channels].reshape(-1), target)
