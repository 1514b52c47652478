"""Prove claims about a run's circuit (`prove RUN`), in a form that others can check.

The task determines which of three kinds of claim is proved:

* every initial state: every grid of 0 and 1 in all channels reaches the target
  (`difflogic.circuits.synthesis.every_start`);
* one initial state: the initial state of a task or sample develops into the target; the text says if it persists;
* rule: a step is one generation of the rule, on every grid, since every neighbourhood is compared.

The file proof.json contains the circuit, so that no other file is needed to check the proof:

    {"format": "difflogic-proof", "version": 1, "difflogic": "0.1.0", "claim": "every-start", "proved": true,
     "text": "Every one of the 2^2048 starts ...", "method": "three-valued simulation", "from_step": 16,
     "height": 16, "width": 16, "periodic": false, "steps": 20, "fire_rate": 1.0, "rule": "",
     "target": ["..11..11", ...], "circuit_sha256": "...", "circuit": {"format": "difflogic-circuit", ...}}

`steps` is the compared step of the task, `from_step` the first step from which the claim is true. For an
asynchronous circuit, `from_step` counts rounds in which every cell fires at least once. `fingerprint` gives the hash.
"""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.circuits.readers import source
from difflogic.circuits.readers.rule import located, rule_netlist
from difflogic.circuits.synthesis import every_start, model_check, tools
from difflogic.circuits.synthesis import prove as equality
from difflogic.circuits.synthesis.every_start import EveryStart
from difflogic.config.resized import knows_larger_grids, resized
from difflogic.config.schema import Config
from difflogic.config.task import MIN_SIDE
from difflogic.core import rules, text_picture
from difflogic.core.bits import IGNORED, Bits
from difflogic.engine import job
from difflogic.errors import CircuitError, UsageError
from difflogic.evaluation.trained_circuit import TrainedCircuit
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from difflogic.model.grid import Grid
from difflogic.system import memory
from difflogic.system.brief import brief
from difflogic.version import __version__

FORMAT, VERSION = source.PROOF, 1
NAME = "proof.json"
SECONDS = 60.0
"""Default time limit of the search for a counterexample, in seconds."""
ROLLOUT = "rollout"
OWN = "difflogic"
"""Name of the built-in checker, which needs no other program."""
CLAIMS = ("every-start", "one-start", "rule")
MOST_SAMPLES = 64
"""Maximum number of samples to prove, since each sample requires a separate proof."""
MOST_STEPS = 10_000
"""Maximum number of steps of a rollout from one initial state; the rollout ends earlier if states repeat."""


@dataclass(frozen=True, eq=False)
class Claim:
    """Claim about a circuit, with all data that its proof needs."""

    claim: str
    """Kind of claim: one of CLAIMS."""
    netlist: CellNetlist
    scenario: Scenario
    target: Bits
    """Target, uint8 `[H, W, L]`; for a rule, an empty array of shape `[0, 0, 0]`."""
    rule: str = ""
    path: Path = Path()
    """Path of the circuit; the file of a rule is also searched in its folder."""

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class Proof:
    """Result of an attempt to prove a claim."""

    claim: Claim
    proved: bool | None
    """True if proved, False if refuted, None if undecided."""
    method: str
    text: str
    from_step: int | None = None
    counterexample: Bits | None = None
    """Initial state `[H, W, C]` that leads to mismatches at the compared step, or None if unknown."""

    __repr__ = brief

    @property
    def judge(self) -> str:
        """Name of the checker that evaluated the claim."""
        return tools.ABC if self.method == model_check.METHOD else OWN

    def to_dict(self) -> dict[str, Any]:
        claim = self.claim
        return {
            "format": FORMAT,
            "version": VERSION,
            "difflogic": __version__,
            "claim": claim.claim,
            "proved": self.proved,
            "text": self.text,
            "method": self.method,
            "from_step": self.from_step,
            "height": claim.scenario.height,
            "width": claim.scenario.width,
            "periodic": claim.netlist.periodic,
            "steps": claim.scenario.steps,
            "fire_rate": claim.scenario.fire_rate,
            "rule": claim.rule,
            "target": list(text_picture.encode(claim.target)),
            "circuit_sha256": fingerprint(claim.netlist),
            "circuit": json.loads(netlist_json.to_json(replace(claim.netlist, scenario=claim.scenario))),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False) + "\n"


def fingerprint(netlist: CellNetlist) -> str:
    """Return the SHA-256 of a circuit's channels, boundary, gates, wires and outputs as 32-bit integers."""
    # The fixed width and byte order give the same hash on every machine.
    head = np.array([netlist.channels, netlist.visible, netlist.periodic, len(netlist.gates)])
    parts = (head, np.array(netlist.origin), netlist.gates, netlist.wires, netlist.outputs)
    return hashlib.sha256(b"".join(part.astype("<i4").tobytes() for part in parts)).hexdigest()


def of_run(trained: TrainedCircuit, every: bool = False, size: tuple[int, int] | None = None) -> Claim:
    """Return the claim that a run's task implies; see `of_circuit` for arguments and errors."""
    return of_circuit(CellNetlist.of_run(trained.circuit, trained.config), trained.config, trained.path, every, size)


def of_circuit(
    netlist: CellNetlist, config: Config, run: Path, every: bool = False, size: tuple[int, int] | None = None
) -> Claim:
    """Return the claim that a circuit's task implies.

    Args:
        netlist: Circuit to prove.
        config: Configuration with the circuit's task.
        run: Path of the circuit, for messages and for locating the rule's file.
        every: Whether to require a claim about every initial state.
        size: Rows and columns of the grid, or None for the grid of the task.

    Raises:
        UsageError: If `every` is set and the task has one initial state, or if circuit, task and size do not fit.
        ConfigError: If the task does not support grids of that size.
    """
    expected = (config.model.periodic, config.model.neighbourhood, config.task.loss_channels)
    if (netlist.periodic, netlist.neighbourhood, netlist.visible) != expected:
        raise UsageError(f"The boundary, neighbourhood or visible channels of the circuit {run} do not match its task.")
    if config.task.rule:
        if size is not None:
            raise UsageError("A proof of a rule applies to every grid size: omit `size`.")
        return _of_rule(config, netlist, run)
    has_one = job.start(config) is not None
    if every and has_one:
        raise UsageError(
            f'The task of {run} has only one initial state ("{config.task.start}"), so a claim about every initial '
            "state is not possible: omit `every_start` to prove the rollout from this state."
        )
    # Only some tasks have a target on another grid.
    if size is not None and not knows_larger_grids(config.task):
        raise UsageError(f"The position of the image of {run} depends on the border of its grid: omit `size`.")
    scenario, target = _on_grid(config, *(size or (config.task.height, config.task.width)))
    return Claim("one-start" if has_one else "every-start", netlist, scenario, target)


def of_samples(trained: TrainedCircuit) -> list[Claim]:
    """Return, for each sample, the claim that it develops into its target. Raises UsageError if not provable."""
    config, task = trained.config, trained.config.task
    samples = trained.data()
    if (
        samples is None
        or len(samples) > MOST_SAMPLES
        or samples.x.shape[-1] > text_picture.MAX_BITS
        or (task.start, len(task.judged_steps)) != ("zeros", 1)
        or task.disturbed
        or (samples.targets == IGNORED).any()
    ):
        raise UsageError(
            f"Cannot prove the samples: expected at most {MOST_SAMPLES}, stored with the run, with free channels that "
            f"begin as zeros and all cells compared once. Test others with `difflogic evaluate {trained.path}`."
        )
    netlist, scenario = CellNetlist.of_run(trained.circuit, config), Scenario.of(config)
    scenarios = [replace(scenario, start="picture", picture=text_picture.encode(start)) for start in samples.x]
    return [Claim("one-start", netlist, *pair) for pair in zip(scenarios, samples.targets[0], strict=True)]


def _on_grid(config: Config, height: int, width: int) -> tuple[Scenario, Bits]:
    """Return the scenario and the target of a task on a grid of `height` rows and `width` columns."""
    own = resized(config, height, width)
    # A board on a grid twice as high or wide has twice the steps; an image keeps its number of steps.
    has_one = job.start(config) is not None
    times = 1 if has_one else max(math.ceil(height / config.task.height), math.ceil(width / config.task.width))
    return replace(Scenario.of(own), steps=times * config.task.steps), job.fixed_target(own.task)


def claimed_grid(netlist: CellNetlist, config: Config | None, height: int, width: int) -> Grid:
    """Return a grid of the circuit's cells, if possible with the target that all initial states should reach.

    There is no target if the task has none on a grid of this size, or if cells fire at random. Raises CircuitError if
    the grid is too large.
    """
    grid = Grid(netlist, height, width)
    if config is None or not job.is_of_every_start(config) or config.train.asynchronous:
        return grid
    # Exports support any circuit on any grid, with or without a target.
    own = (height, width) == (config.task.height, config.task.width)
    if min(height, width) < MIN_SIDE or not (own or knows_larger_grids(config.task)):
        return grid
    scenario, target = _on_grid(config, height, width)
    return replace(grid, target=target, steps=scenario.steps)


def _of_rule(config: Config, netlist: CellNetlist, run: Path) -> Claim:
    if config.task.steps != 1 or config.train.asynchronous:
        raise UsageError(
            "Expected a task with one synchronous step per generation of its rule: only such a task can be proved."
        )
    nothing = np.zeros((0, 0, 0), dtype=np.uint8)
    rule = config.task.rule.removesuffix(rules.grid(config.task.rule))
    return Claim("rule", netlist, Scenario.of(config), nothing, rule, run)


def at_once(trained: TrainedCircuit) -> Proof | None:
    """Try to prove, without search, that every initial state reaches the target; None if this is not the claim."""
    return decide(of_run(trained), None) if job.is_of_every_start(trained.config) else None


def decide(claim: Claim, seconds: float | None = SECONDS, judge: str = OWN) -> Proof:
    """Prove or refute a claim.

    Args:
        claim: Claim to prove or refute.
        seconds: Time limit of the search for a counterexample, in seconds, or None for no search.
        judge: Name of the checker: `difflogic`, or `berkeley-abc` for a claim about every initial state.

    Raises:
        LimitError: If the grid does not fit into memory.
        UsageError: If the checker does not support the claim.
        ToolError: If the checker is missing or fails.
    """
    if judge != OWN:
        return _by_abc(claim, SECONDS if seconds is None else seconds)
    return {"every-start": _every_start, "one-start": _one_start, "rule": _rule}[claim.claim](claim, seconds)


def _by_abc(claim: Claim, seconds: float) -> Proof:
    scenario = claim.scenario
    if claim.claim != "every-start" or scenario.fire_rate < 1:
        raise UsageError(
            f"--checker {tools.ABC} supports only claims about every initial state of a synchronous circuit: omit it "
            "to use the built-in checker."
        )
    # The checker receives the complete grid as one netlist with latches. It shares no code with our simulation.
    grid = Grid(claim.netlist, scenario.height, scenario.width, claim.target, scenario.steps)
    return _of_all_starts(claim, model_check.always(grid, claim.target, seconds))


def _every_start(claim: Claim, seconds: float | None) -> Proof:
    scenario, netlist = claim.scenario, claim.netlist
    # Check before allocating, since a mistyped side would fill the memory.
    every_start.check_fits(netlist, scenario.height, scenario.width, memory.free_memory())
    synchronous = scenario.fire_rate == 1
    result = every_start.prove_every_start(netlist, claim.target, scenario.steps, seconds, synchronous)
    return _of_all_starts(claim, result)


def _of_all_starts(claim: Claim, result: EveryStart) -> Proof:
    scenario, netlist = claim.scenario, claim.netlist
    grid = f"{scenario.width}x{scenario.height} cells"
    if not result.proved or result.from_step is None:
        word = "Inconclusive" if result.proved is None else "Wrong"
        text = f"{word} for every start on {grid}: {result.reason}."
        if result.counterexample is not None:
            wrong, steps = int(np.count_nonzero(shown(claim, result.counterexample) != claim.target)), scenario.steps
            # Count mismatches of the original circuit, since the search used a simplified one.
            text += f" For the counterexample, {wrong} of {claim.target.size} values are wrong at step {steps}."
    else:
        starts = f"Every one of the 2^{scenario.height * scenario.width * netlist.channels} starts on {grid}"
        text = f"{starts} shows the target {_when(claim, result.from_step)}."
    if scenario.fire_rate < 1:
        text += (
            " No step can be named for an asynchronous circuit: which cells fire is drawn, and a cell that never fired "
            "still has the value that it started with."
        )
    return Proof(claim, result.proved, result.method, text, result.from_step, result.counterexample)


def shown(claim: Claim, start: Bits) -> Bits:
    """Return the visible channels `[H, W, L]` of the circuit at the compared step, from the initial state `start`."""
    return claim.netlist.after(start, claim.scenario.steps)[..., : claim.target.shape[-1]]


def _when(claim: Claim, step: int) -> str:
    scenario = claim.scenario
    if scenario.fire_rate < 1:
        steps = every_start.asynchronous_steps(step, scenario.height * scenario.width, scenario.fire_rate)
        return (
            f"after {step} rounds, in each of which every cell fires at least once, and ever after; at a fire rate of "
            f"{scenario.fire_rate:g} these are over within {steps} steps, but for a probability below "
            f"{every_start.UNLIKELY:g}"
        )
    late = f", which is later than step {scenario.steps}, where the task compares" if step > scenario.steps else ""
    return f"from step {step} on, for ever{late}"


def _one_start(claim: Claim, seconds: float | None) -> Proof:
    """Prove a claim by a rollout that ends when a state repeats (all later states are then known) or at MOST_STEPS."""
    scenario, netlist, target = claim.scenario, claim.netlist, claim.target
    if scenario.fire_rate < 1:
        raise UsageError(
            "Cannot prove an asynchronous circuit with one initial state, since its rollout depends on which cells "
            "fire: measure some rollouts with `difflogic evaluate`."
        )
    if (start := scenario.grid(netlist.origin)) is None:
        raise CircuitError(
            "Expected a circuit with one initial state, but the initial states of this circuit are random."
        )
    every_start.check_fits(netlist, scenario.height, scenario.width, memory.free_memory())
    right_from, saved, power = 0, start, 1
    ending = f"is still there at step {MOST_STEPS}"
    for step, [state] in enumerate(netlist.steps(start[None], max(MOST_STEPS, scenario.steps)), 1):
        wrong = int(np.count_nonzero(state[..., : target.shape[-1]] != target))
        if wrong and step == scenario.steps:
            return Proof(claim, False, ROLLOUT, f"Wrong: {wrong} of {target.size} values differ at step {step}.")
        if wrong and step > scenario.steps:
            ending = f"is lost at step {step}"
            break
        # The first step of the current series of states without mismatches; 0 if this state has mismatches.
        right_from = 0 if wrong else right_from or step
        # Brent's algorithm: save the state of step 1, 2, 4, 8, ... until it returns. Then all states since the saved
        # state, of step power // 2, will return, also wrong ones. Take steps = 6 and, from step 4 on, states that are
        # right, wrong, right in a cycle: step 7 repeats the state of step 4, but the wrong state of step 5 returns too.
        if step > scenario.steps and right_from <= power // 2 and np.array_equal(state, saved):
            ending = "stays for ever, since the states repeat"
            break
        if step == power:
            saved, power = state, 2 * power
    text = f"From its initial state the image is right at step {scenario.steps}, and {ending}."
    return Proof(claim, True, ROLLOUT, text, right_from)


def _rule(claim: Claim, seconds: float | None) -> Proof:
    netlist = claim.netlist
    # A rule is compared as a circuit of one cell, so the proof needs no grid.
    [verdict] = equality.prove(netlist, rule_netlist(located(claim.rule, claim.path), netlist.periodic), ["difflogic"])
    method = verdict.how
    if verdict.equal is None:
        return Proof(claim, None, method, f"Inconclusive: {verdict.how}.")
    if not verdict.equal:
        counterexample = verdict.counterexample
        ones = "unknown" if counterexample is None else ", ".join(counterexample.ones) or "none"
        return Proof(claim, False, method, f"Wrong for {claim.rule}: it differs where these inputs are 1: {ones}.")
    text = f"From every initial state, on every grid, each step is one generation of {claim.rule}."
    return Proof(claim, True, method, text, from_step=1)


def lies(proof: Proof, again: Proof) -> list[str]:
    """Return the names of the fields whose values in `proof` differ from those in `again`, a new proof of the claim."""
    claimed, proved = proof.to_dict(), again.to_dict()
    return [name for name in proved if claimed[name] != proved[name]]
