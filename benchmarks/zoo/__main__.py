"""Make the zoo, the circuits that come with difflogic: train or build them by the stored commands, simplify and prove.

    python -m benchmarks.zoo                       # make all missing circuits
    python -m benchmarks.zoo highlife rocket       # make two circuits again
    python -m benchmarks.zoo --seconds 150         # start no circuit after 150 seconds
    python -m benchmarks.zoo --film wireworld      # only write the recording from which a rule is learned
    python -m benchmarks.zoo --report              # rebuild the table of docs/results/zoo.md
    python -m benchmarks.zoo life --judge my.blif  # check that a circuit is equal, and compare its number of gates
    python -m benchmarks.zoo life --judge my.aig   # check a binary AIGER file, and compare its number of ANDs

The images in this folder have 8x8 to 12x10 cells. Rules have their usual names. A recording starts from random states,
which the seed determines, and is written into `runs/films`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium
import numpy as np
from PIL import Image, ImageDraw

import difflogic
from benchmarks.circuits.__main__ import in_order
from benchmarks.store import CHECKOUT, inserted
from benchmarks.zoo import loops, states
from difflogic.circuits.export import aiger
from difflogic.circuits.readers import aiger as aiger_reader
from difflogic.circuits.readers import blif, source, zoo
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.circuits.synthesis.luts import lut_count
from difflogic.circuits.synthesis.simplify import simplified
from difflogic.cli.commands.zoo import what
from difflogic.core import text_picture
from difflogic.evaluation import proof, trained_circuit
from difflogic.model import function_json, netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.controller import Controller
from difflogic.model.deployment import Scenario
from difflogic.model.function_netlist import FunctionNetlist

RULES = {
    "life": "B3/S23",
    "highlife": "B36/S23",
    "seeds": "B2/S",
    "day-and-night": "B3678/S34678",
    "maze": "B3/S12345",
    "mazectric": "B3/S1234",
    "replicator": "B1357/S1357",
    "fredkin": "B1357/S02468",
    "2x2": "B36/S125",
    "34-life": "B34/S34",
    "amoeba": "B357/S1358",
    "anneal": "B4678/S35678",
    "assimilation": "B345/S4567",
    "coagulations": "B378/S235678",
    "coral": "B3/S45678",
    "corrosion": "B3/S124",
    "diamoeba": "B35678/S5678",
    "dotlife": "B3/S023",
    "dry-life": "B37/S23",
    "eight-life": "B3/S238",
    "flakes": "B3/S012345678",
    "gnarl": "B1/S1",
    "h-trees": "B1/S012345678",
    "honey-life": "B38/S238",
    "iceballs": "B25678/S5678",
    "live-free-or-die": "B2/S0",
    "long-life": "B345/S5",
    "move": "B368/S245",
    "pedestrian-life": "B38/S23",
    "plow-world": "B378/S012345678",
    "pseudo-life": "B357/S238",
    "serviettes": "B234/S",
    "stains": "B3678/S235678",
    "vote": "B5678/S45678",
    "walled-cities": "B45678/S2345",
    "slow-blob": "B367/S125678",
    "snow-life": "B3/S1237",
    "invertamaze": "B028/S0124",
    "bacteria": "B34/S456",
    "gems": "B3457/S4568",
    "bugs": "B3567/S15678",
    "holstein": "B35678/S4678",
    "hex-life": "B2/S34H",
    "rule-30": "W30",
    "rule-54": "W54",
    "rule-90": "W90",
    "rule-110": "W110",
    "rule-150": "W150",
    "rule-184": "W184",
}
PRESETS = ("checkerboard", "checkerboard-async", "lizard", "colored-g")
CONTROLLERS = ("cartpole", "cartpole-memory", "cartpole-automaton", "acrobot")
TASK = "difflogic-tasks:suits"
"""Task of the package examples/tasks, which must be installed: one circuit grows four images."""
SEED = 23
EPISODES, EPISODES_FROM = 100, 910_000
"""Number of episodes of a controller, and the seed of the first, which training does not use."""
LIMIT = 600
"""Time limit of a training in seconds; circuits that are not solved are left out."""
HERE = Path("benchmarks/zoo")
FILMS = Path("runs/films")
ENDING = f" --until-solved --seed {SEED}"
BEGIN = "<!-- written by python -m benchmarks.zoo --report -->"


def commands() -> dict[str, str]:
    """Return the training command of each circuit."""
    made = {name: f"game-of-life --rule {rule}" for name, rule in RULES.items()}
    made |= {name: f"--data {FILMS / name}.npz" for name in states.RULES}
    pictures = {path.stem: f"{_preset(path)} --target {path}" for path in sorted(HERE.glob("*.png"))}
    made |= {name: name for name in (*PRESETS, *CONTROLLERS)} | {"heart": "heart-steady", "suits": TASK} | pictures
    # With learned wiring this seed's circuit has six gates instead of two.
    made["checkerboard-async"] += " --set model.candidates=1"
    built = {name: f"difflogic build {rule}" for name, (rule, *_) in loops.LOOPS.items()}
    return {name: f"difflogic train {rest}{ENDING}" for name, rest in made.items()} | built


def _preset(path: Path) -> str:
    """Return the preset for an image: `colored-g` for colours, for which `heart-steady` has too few channels."""
    with Image.open(path) as held:
        red, green, blue = np.moveaxis(np.asarray(held.convert("RGB")), -1, 0)
    return "colored-g" if (red != green).any() or (green != blue).any() else "heart-steady"


def film(name: str) -> None:
    """Write the recording from which a rule of several states is learned."""
    FILMS.mkdir(parents=True, exist_ok=True)
    x, y = states.film(name, SEED)
    np.savez_compressed(FILMS / f"{name}.npz", x=x, y=y)


def make(name: str, command: str, run: Path) -> None:
    """Train, simplify, prove and write a circuit. Raises AssertionError if any of these fails."""
    if name in loops.LOOPS:
        keep(name, command, *loops.entry(name))
        return
    if name in states.RULES:
        film(name)
    words = [sys.executable, "-m", *shlex.split(command), "--out", str(run)]
    if not run.exists():
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.returncode == 0, f"{name}: {done.stdout[-600:]}{done.stderr[-600:]}"
    if name in CONTROLLERS:
        keep_controller(name, command, run)
    elif name not in RULES and (name in states.RULES or name == "suits"):
        keep_circuit(name, command, trained_circuit.load(run))
    else:
        keep_proof(name, command, trained_circuit.load(run))


def keep_proof(name: str, command: str, trained: trained_circuit.TrainedCircuit) -> None:
    """Simplify the circuit of an image or a rule, and write its proof."""
    claim = proof.of_run(trained) if trained.config.task.target != "data" else of_film(name, trained)
    found = simplified(claim.netlist)
    proved = proof.decide(replace(claim, netlist=found.netlist))
    assert found.verdict.equal, f"{name}: {found.verdict}"
    assert proved.proved, f"{name}: {proved.text}"
    keep(name, command, proved.to_dict(), [gate_count(claim.netlist), gate_count(found.netlist)])


def of_film(name: str, trained: trained_circuit.TrainedCircuit) -> proof.Claim:
    """Return the claim that a circuit learned from a recording computes the two-state rule of the recording."""
    netlist, nothing = CellNetlist.of_run(trained.circuit, trained.config), np.zeros((0, 0, 0), dtype=np.uint8)
    return proof.Claim("rule", netlist, Scenario.of(trained.config), nothing, RULES[name])


def keep_circuit(name: str, command: str, trained: trained_circuit.TrainedCircuit) -> None:
    """Simplify, verify and write a circuit without a claim for proof.json: of several states or of four images."""
    before = CellNetlist.of_run(trained.circuit, trained.config)
    found = simplified(before)
    assert found.verdict.equal, f"{name}: {found.verdict}"
    circuit = json.loads(netlist_json.to_json(found.netlist))
    if name in states.RULES:
        rule = states.RULES[name]
        said = {"does": f"a rule of {rule.states} states: {rule.name}", "text": states.proved(rule, circuit)}
        circuit["habitat"] = states.scenario(name, SEED)
    else:
        said, circuit["habitat"] = states.suits(circuit, trained.config.task.steps)
    keep(name, command, circuit | {"proved": True} | said, [gate_count(before), gate_count(found.netlist)])


def keep(name: str, command: str, entry: dict[str, object], gates: list[int]) -> None:
    """Write an entry of the zoo, with its command and its numbers of gates."""
    entry |= {"learned": {"command": command, "gates": gates}}
    (zoo.FOLDER / f"{name}.json").write_text(json.dumps(entry, separators=(",", ":")) + "\n", encoding="utf-8")
    print(name, *gates, entry["text"], flush=True)


def keep_controller(name: str, command: str, run: Path) -> None:
    """Simplify the controller of a run, evaluate it on new episodes, and write it.

    If the run folder has a `small.json`, it replaces the simplification, whose search may take hours.
    """
    trained, small = source.load_function(run), run / "small.json"
    found = source.load_function(small) if small.is_file() else difflogic.simplify(run).netlist
    assert isinstance(found, Controller)
    (verdict,) = difflogic.prove(trained, found, judges=["difflogic"]).verdicts
    assert verdict.equal, f"{name}: {verdict}"
    score = np.mean([episode(found, EPISODES_FROM + number) for number in range(EPISODES)])
    least = gymnasium.spec(found.environment).reward_threshold
    assert least is not None
    assert score >= least, f"{name}: mean return {score:.1f} in fresh episodes, {least} expected"
    text = f"Equal to the trained circuit in every state. Mean return {score:.1f} in {EPISODES} fresh episodes."
    entry = json.loads(function_json.to_json(found)) | {"proved": True, "text": text}
    keep(name, command, entry, [gate_count(trained), gate_count(found)])


def episode(controller: Controller, seed: int) -> float:
    """Return the return of one episode, played by gymnasium without difflogic's environments."""
    environment = gymnasium.make(controller.environment)
    seen, _ = environment.reset(seed=seed)
    held, bits = np.zeros(controller.memory, dtype=np.int64), len(controller.outputs) - controller.memory
    total, over = 0.0, False
    while not over:
        # The bits above the number of the action are the memory.
        (action,) = controller(np.concatenate([np.asarray(seen, dtype=np.float64), held])[None])
        held = action >> bits + np.arange(controller.memory) & 1
        seen, reward, done, late, _ = environment.step(int(action) & (1 << bits) - 1)
        total, over = total + float(reward), done or late
    return total


def judge(name: str, file: Path) -> str:
    """Compare a circuit of another program with that of the zoo; inputs and outputs must have the same order."""
    known, data = held(name), file.read_bytes()
    if data.startswith(b"aig "):
        other, unit, ours = in_order(aiger_reader.read(data), known), "ANDs", "what export writes"
        best, count = ands(aiger.encode(known)), ands(data)
    else:
        other, unit, ours = in_order(blif.read(data.decode()), known), "gates", "the best known"
        best, count = gate_count(known), gate_count(other)
    (verdict,) = difflogic.prove(known, other, judges=["difflogic"]).verdicts
    word = "SMALLER than" if count < best else "as small as" if count == best else "larger than"
    return f"{name}: equal, {count} {unit}: {word} {ours}, {best}." if verdict.equal else f"{name}: {verdict}"


def held(name: str) -> CellNetlist | FunctionNetlist:
    """Return the circuit of the zoo with this name."""
    file = zoo.FOLDER / f"{name}.json"
    return source.function(file) or source.load(file).netlist


def ands(data: bytes) -> int:
    """Return the number of ANDs in the header of a binary AIGER."""
    return int(data.split(maxsplit=6)[5])


def picture(name: str) -> Image.Image:
    """Return the image of a circuit: its target image, the state of a rule after 30 steps, or a controller's actions.

    For a rule on a line, the rows of the image are the steps.
    """
    data = zoo.entry(name)
    if "environment" in data:
        return decisions(source.load_function(name))
    if "does" in data:
        made = states.picture(name, source.load(zoo.FOLDER / f"{name}.json").netlist)
        return made.resize((62, 62), Image.Resampling.NEAREST)
    bits = text_picture.decode(data["target"], 3) if data["target"] else None
    if bits is None:
        netlist = source.load(zoo.FOLDER / f"{name}.json").netlist
        # The side is odd, since some additive rules end with zeros on a torus with a power of two as its side.
        start = np.random.default_rng(SEED).random((1, 31, 31, 1)) < 0.4
        bits = netlist.rollout(start.astype(np.uint8), 30)[-1, 0]
        if netlist.neighbourhood == "line":
            bits = netlist.rollout(start[:, :1].astype(np.uint8), 30)[:, 0, 0]
    colours = bits if bits.shape[-1] == 3 and bits[..., 1:].any() else np.repeat(bits[..., :1], 3, axis=-1)
    return Image.fromarray((255 * colours).astype(np.uint8)).resize((62, 62), Image.Resampling.NEAREST)


def decisions(function: FunctionNetlist) -> Image.Image:
    """Return the actions of a controller, black to white, by its last two observations, horizontal and vertical.

    The memory of the controller is 0.
    """
    rows = function.thermometer.thresholds
    level, upright = [each for each in range(len(rows) - function.memory) if rows[each]][-2:]
    reach = [1.2 * max(map(abs, each), default=0) for each in rows]
    seen = np.zeros((62, 62, len(rows)))
    seen[..., level] = np.linspace(-reach[level], reach[level], 62)
    seen[..., upright] = np.linspace(reach[upright], -reach[upright], 62)[:, None]
    shown = (1 << len(function.outputs) - function.memory) - 1
    actions = function(seen.reshape(-1, len(rows))).reshape(62, 62) & shown
    return Image.fromarray((255 * actions // (len(function.choices) - 1)).astype(np.uint8))


def sheet() -> Image.Image:
    """Return an image of all circuits with their names."""
    names, columns = zoo.names(), 10
    made = Image.new("RGB", (96 * columns, 84 * -(-len(names) // columns)), "white")
    for place, name in enumerate(names):
        row, column = divmod(place, columns)
        made.paste(picture(name), (96 * column + 16, 84 * row + 2))
        ImageDraw.Draw(made).text((96 * column + 48, 84 * row + 67), name[:16], "black", anchor="ma")
    return made


def report() -> None:
    """Write the table of all circuits into its page, and write the images."""
    rows = [
        "| name | what it does | gates as trained | best known | three-input tables | exported as ANDs | made by |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in zoo.names():
        data = zoo.entry(name)
        before, after = data["learned"]["gates"]
        command = data["learned"]["command"].removeprefix("difflogic train ").removesuffix(ENDING)
        small = ands(aiger.encode(held(name)))
        rows.append(
            f"| `{name}` | {what(data)} | {before} | {after} | {lut_count(held(name))} | {small} | `{command}` |"
        )
    sheet().save(CHECKOUT / "docs" / "images" / "zoo.png", optimize=True)
    loops.image().save(CHECKOUT / "docs" / "images" / "loops.png", optimize=True)
    page = CHECKOUT / "docs" / "results" / "zoo.md"
    page.write_text(inserted(page.read_text(encoding="utf-8"), BEGIN, "\n".join(rows)), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after so many")
    parser.add_argument("--film", metavar="RULE", help="only write the film of this rule of several states")
    parser.add_argument("--runs", type=Path, help="keep runs here, and go on from those that ended [a temporary one]")
    parser.add_argument("--report", action="store_true", help="write the table of docs/results/zoo.md")
    parser.add_argument("--judge", type=Path, metavar="FILE", help="another circuit for the one name, in BLIF or AIGER")
    asked, began = parser.parse_args(), time.monotonic()
    if asked.judge is not None:
        print(judge(asked.names[0], asked.judge))
    if asked.report:
        report()
    if asked.film is not None:
        film(asked.film)
    if asked.judge is not None or asked.report or asked.film is not None:
        return
    all_of_them = commands()
    for name in asked.names or all_of_them:
        if time.monotonic() - began < asked.seconds and (asked.names or name not in zoo.names()):
            try:
                with TemporaryDirectory(prefix="difflogic-") as folder:
                    make(name, all_of_them[name], (asked.runs or Path(folder)) / name)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print(f"{name}: left out. {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
