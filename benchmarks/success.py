"""How often does training succeed? Every seed of a preset and recipe, by one protocol; what is done is not done again.

python -m benchmarks.success checkerboard robust      # seeds 0 to 31, to benchmarks/results/success.jsonl
python -m benchmarks.success --report                 # the tables
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.store import RESULTS
from difflogic import presets, prng, recipes
from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.engine import Engine, Evaluation, TrainState
from difflogic.errors import DifflogicError, UsageError
from difflogic.reference.fire_mask import draw_masks
from difflogic.shape import Shape
from difflogic.train import restarts, tasks
from difflogic.train.journal import Row
from difflogic.train.placement import open_engine
from difflogic.train.population_summary import wilson_interval
from difflogic.train.start import fresh
from difflogic.train.summary import active_gates, undecided_gates

PROTOCOL = 1
"""Counted up whenever a result would mean something else."""
STARTS = 64
"""Fresh starts that decide; nothing is chosen by them."""
FRESH_STREAM, MASK_STREAM = 0x66726573, 0x66726D73
"""`fold_in` data of the fresh starts ("fres") and of the masks that they are run with ("frms")."""
TIMES = 4
"""A board must still be right after so many times the CA steps of training..."""
LARGE = 64
"""...and on a grid of so many cells a side."""
MASK_SEEDS = 3
MOST_WRONG = 0.01
"""Share of cells that an asynchronous board may have wrong: at no moment have all of them just been updated."""
CELLS_AT_ONCE = 1 << 15
"""In one rollout: its states are all kept."""

SEEDS = {"game-of-life": 32, "checkerboard": 32, "checkerboard-async": 32, "lizard": 8, "colored-g": 8}
"""How many seeds, from 0 on, chosen before anything was measured."""
INTERVAL = {"checkerboard": 5}
"""Epochs between looks at the probes, where not 10."""
RESTARTS = {("checkerboard", "robust"): 3}
"""How often a recipe begins again, at most; where it is not said, never."""
FILE = "success.jsonl"


class Judge:
    """Wrong cells of a circuit on boards and elsewhere; `engine` rolls out."""

    def __init__(self, engine: Engine, config: Config) -> None:
        self.engine, self.config = engine, config

    def wrong(self, circuit: Circuit, starts: np.ndarray, steps: int, masks: np.ndarray | None = None) -> int:
        """Values of the loss channels that are wrong after `steps`, from `starts [B, H, W, C]`."""
        task = dataclasses.replace(self.config.task, height=starts.shape[1], width=starts.shape[2])
        target = tasks.target(task)
        assert target is not None
        total = 0
        count = CELLS_AT_ONCE // (starts.shape[1] * starts.shape[2])
        for first in range(0, len(starts), count):
            x = starts[first : first + count].astype(np.float32)
            for begin in range(0, steps, self.config.task.steps):
                part = None if masks is None else masks[begin : begin + self.config.task.steps]
                x = self.engine.rollout(circuit, x, min(self.config.task.steps, steps - begin), "hard", part)[-1]
            total += int((x[..., : task.loss_channels] != target).sum())
        return total

    def board(self, circuit: Circuit, starts: np.ndarray, large: np.ndarray) -> dict[str, int]:
        """At T and 4T, and on large grids at 4T."""
        steps = self.config.task.steps
        return {
            "wrong": self.wrong(circuit, starts, steps),
            "wrong_later": self.wrong(circuit, starts, TIMES * steps),
            "wrong_large": self.wrong(circuit, large, TIMES * steps),
        }

    def asynchronous(self, circuit: Circuit, starts: np.ndarray, key: prng.Key) -> dict[str, Any]:
        """Shares of wrong cells at 4T, with three sequences of masks."""
        task, steps = self.config.task, TIMES * self.config.task.steps
        shape = Shape(1, task.height, task.width, 1, steps)
        shares = []
        for sub in prng.split(key, MASK_SEEDS):
            masks = draw_masks(shape, self.config.train.fire_rate, sub)
            count = self.wrong(circuit, starts, steps, masks.reshape(steps, task.height, task.width, 1))
            shares.append(count / (len(starts) * task.height * task.width))
        return {"wrong_shares": shares}


def draw(config: Config, count: int, height: int, width: int) -> np.ndarray:
    """Fresh random starts, of a stream that neither training nor the probes see."""
    key = prng.fold_in(prng.fold_in(prng.key_from_seed(config.seed), FRESH_STREAM), height)
    return prng.randint_power_of_two(key, (count, height, width, config.model.channels), 2)


def turned(probes: np.ndarray) -> np.ndarray:
    """Square probes as they are, turned and mirrored: eight times as many starts, each as random as the probes."""
    turns = [np.rot90(probes, count, axes=(1, 2)) for count in range(4)]
    return np.concatenate([*turns, *(turn.swapaxes(1, 2) for turn in turns)])


def tiled(probes: np.ndarray, side: int) -> np.ndarray:
    """The probes side by side, as few grids of `side` x `side`; what is left over is not used."""
    height, width = probes.shape[1:3]
    down, across = side // height, side // width
    boards = probes[: len(probes) // (down * across) * down * across].reshape(-1, down, across, *probes.shape[1:])
    return boards.swapaxes(2, 3).reshape(len(boards), down * height, across * width, -1)


def is_right(config: Config, judged: dict[str, Any]) -> bool:
    """What success means, on fresh starts or on the probes."""
    if config.train.asynchronous:
        return float(np.median(judged["wrong_shares"])) <= MOST_WRONG
    return not any(judged.values())


@dataclasses.dataclass(frozen=True)
class Case:
    """One run to be made."""

    preset: str
    recipe: str
    seed: int

    @property
    def config(self) -> Config:
        return recipes.applied(self.recipe, presets.get(self.preset)).with_(seed=self.seed)

    @property
    def key(self) -> tuple[str, str, int]:
        return self.preset, self.recipe, self.seed


def chosen_by_probes(judge: Judge, circuit: Circuit, probes: np.ndarray, verdict: Evaluation) -> bool:
    """Whether to stop here, by the 32 probes alone: at T and 4T, also turned and mirrored, and side by side on large
    grids."""
    config = judge.config
    if config.train.asynchronous:
        key = prng.fold_in(prng.key_from_seed(config.seed), MASK_STREAM + 1)
        return verdict.accuracy > 0.9 and max(judge.asynchronous(circuit, probes, key)["wrong_shares"]) == 0
    if verdict.hard_loss:
        return False
    if config.task.start != "random":
        return True
    views = turned(probes)
    return is_right(config, judge.board(circuit, views, tiled(views, LARGE)))


def verdict(judge: Judge, circuit: Circuit, last: Evaluation) -> dict[str, Any]:
    """On 64 fresh starts, or where all starts are among the probes on those."""
    config = judge.config
    if config.task.start != "random":
        return {"wrong": last.hard_loss}
    starts = draw(config, STARTS, config.task.height, config.task.width)
    if config.train.asynchronous:
        return judge.asynchronous(circuit, starts, prng.fold_in(prng.key_from_seed(config.seed), MASK_STREAM))
    return judge.board(circuit, starts, draw(config, STARTS, LARGE, LARGE))


@dataclasses.dataclass
class Outcome:
    """One attempt."""

    circuit: Circuit
    verdict: Evaluation
    state: TrainState
    rows: list[Row]
    chosen: bool
    """Whether the probes said stop."""


def attempt(config: Config, engine: Engine, interval: int, budget: int) -> Outcome:
    """Train until the probes say stop, it stalls, or the epochs are used up; all attempts together have `budget`."""
    member = fresh(config, None).members[0]
    model, judge, rows = engine.open_model(member.job, member.state), Judge(engine, config), []
    while True:
        model.train(min(interval, config.train.epochs - len(rows)))
        rows += [Row.of(metrics, 0.0) for metrics in model.drain()]
        judged, state = model.evaluate(), model.to_cpu()
        circuit = member.job.circuit.with_logits(state.logits)
        chosen = chosen_by_probes(judge, circuit, member.job.probes, judged)
        over = len(rows) >= config.train.epochs or (budget and restarts.is_stalled(rows, budget))
        if chosen or over:
            model.close()
            return Outcome(circuit, judged, state, rows, chosen)


def run(case: Case, engine: Engine) -> dict[str, Any]:
    """Train one seed, with its recipe's restarts, and judge what is there at the end."""
    config, began, used = case.config, time.monotonic(), 0
    interval, most = INTERVAL.get(case.preset, 10), RESTARTS.get((case.preset, case.recipe), 0)
    for number in range(most + 1):
        left = config.train.epochs - used
        own = config.with_(seed=restarts.seed_of(case.seed, number), train={"epochs": left})
        last = number == most or restarts.is_last(left, config.train.epochs)
        outcome = attempt(own, engine, interval, 0 if last else config.train.epochs)
        used += len(outcome.rows)
        if outcome.chosen or last:
            break
    result = verdict(Judge(engine, own), outcome.circuit, outcome.verdict)
    return {
        "protocol": PROTOCOL,
        **dataclasses.asdict(case),
        "attempts": number + 1,
        "epochs": used,
        "chosen_by_probes": outcome.chosen,
        **result,
        "success": bool(outcome.chosen and is_right(own, result)),
        **_of_state(outcome.state),
        "soft_loss": outcome.rows[-1].soft_loss,
        "train": dataclasses.asdict(config.train),
        "engine": engine.info.engine,
        "seconds": round(time.monotonic() - began, 1),
    }


def _of_state(state: TrainState) -> dict[str, int]:
    return {"active_gates": active_gates(state.logits), "undecided_gates": undecided_gates(state.logits)}


def load(path: Path) -> list[dict[str, Any]]:
    """What was done. Raises UsageError where that was by another protocol."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    if others := {line["protocol"] for line in lines} - {PROTOCOL}:
        raise UsageError(
            f"{path} holds results of protocol {min(others)}, but this is protocol {PROTOCOL}: give another folder."
        )
    return lines


def missing(case: Case, done: Sequence[dict[str, Any]]) -> bool:
    return case.key not in {(line["preset"], line["recipe"], line["seed"]) for line in done}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset", nargs="?", choices=SEEDS)
    parser.add_argument("recipe", nargs="?", choices=recipes.NAMES)
    parser.add_argument("--seeds", type=int, help="so many, from 0 on, instead of the protocol's")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="print the tables of what is there")
    options = parser.parse_args()
    try:
        if options.report:
            print(report(load(options.folder / FILE)))
        elif options.preset is None or options.recipe is None:
            parser.error("say which preset and recipe, or --report")
        else:
            study(options, print)
    except DifflogicError as error:
        parser.exit(error.exit_code, f"{error}\n")


def study(options: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Every seed that is not done."""
    path, engine = options.folder / FILE, open_engine(options.engine)
    for seed in range(options.seeds or SEEDS[options.preset]):
        case = Case(options.preset, options.recipe, seed)
        if missing(case, load(path)):
            line = run(case, engine)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            say(f"{case.preset} {case.recipe} {seed}: {'solved' if line['success'] else 'NOT'} at {line['epochs']}")


def report(lines: Sequence[dict[str, Any]]) -> str:
    """A table in Markdown: a row per preset and recipe."""
    return "\n".join(_rows(lines))


def _rows(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| preset | recipe | epochs | solved | 95 % Wilson | epochs to success | active gates |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for preset in SEEDS:
        for recipe in recipes.NAMES:
            of = [line for line in lines if (line["preset"], line["recipe"]) == (preset, recipe)]
            if of:
                yield _row(preset, recipe, of)


def _row(preset: str, recipe: str, lines: Sequence[dict[str, Any]]) -> str:
    solved = [line for line in lines if line["success"]]
    low, high = wilson_interval(len(solved), len(lines))
    cells = [preset, recipe, str(presets.get(preset).train.epochs), f"{len(solved)} of {len(lines)}"]
    cells += [f"{100 * low:.0f} to {100 * high:.0f} %", _spread(solved, "epochs"), _spread(solved, "active_gates")]
    return f"| {' | '.join(cells)} |"


def _spread(lines: Sequence[dict[str, Any]], name: str) -> str:
    """Median, and from the least to the most."""
    values = [line[name] for line in lines]
    return f"{np.median(values):g} ({min(values)} to {max(values)})" if values else "-"


if __name__ == "__main__":
    main()
