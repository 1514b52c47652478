"""`difflogic simulate`: run a hard circuit on a large grid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, force_option, grid_size, json_option, output_option, show_choice
from difflogic.cli.training import SIGNAL_BASE
from difflogic.config.choices import BOUNDARIES

if TYPE_CHECKING:
    from difflogic.circuits.readers.source import LoadedCircuit
    from difflogic.engine.simulation import SimulationSpec
    from difflogic.system.files import Output

DEFAULT_SIDE = 256


@click.command("simulate")
@click.argument("circuit", type=PATH)
@click.option("--size", type=grid_size, metavar="WIDTHxHEIGHT", help="The grid [that of --start, or 256x256].")
@click.option("--steps", type=click.IntRange(min=0), default=1000, show_default=True, help="CA steps.")
@click.option(
    "--until",
    metavar="still|period:N|steps",
    default="steps",
    help="still: stop when a step changes nothing. period:N: stop when one of the last N states returns. steps: run "
    "all --steps [steps].",
)
@click.option(
    "--engine",
    metavar="auto|numba|gpu[:INDEX|:NAME]|reference",
    default="auto",
    help="The engine. auto [the default]: the fastest one in a short measurement.",
)
@click.option("--boundary", type=click.Choice(BOUNDARIES), help="The boundary of the grid [the circuit's].")
@click.option("--visible", type=int, metavar="V", help="The number of channels that form the image [the circuit's].")
@click.option("--fire-rate", type=float, metavar="R", help="Share of cells updated in a step [the circuit's, or 1].")
@click.option(
    "--start",
    metavar="random|seed|zeros|picture|FILE",
    help="The initial state: random bits, one cell in the middle, nothing, the circuit's own image, or a file that is "
    "put into the middle: a pattern (RLE, .cells, Life, MacroCell), .png or .npy [the circuit's, or random].",
)
@click.option("--density", type=float, default=0.5, show_default=True, help="Share of ones in a random initial state.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="The random seed.")
@output_option(help="Write the last state to .rle, .png or .npy; several to .gif, or to .png for a one-row grid.")
@force_option
@click.option(
    "--every", type=click.IntRange(min=1), metavar="N", help="Write every N-th step (.gif, .npy), or show it (--live)."
)
@click.option("--live", is_flag=True, help="Show the grid in the terminal.")
@json_option
def command(circuit: Path, steps: int, start: str | None, out: Output | None, as_json: bool, **options: Any) -> int:
    """Run a hard circuit on a large grid, 64 cells per word on the CPU, 32 on a GPU.

    CIRCUIT is a run folder, a circuit.json, a rule such as B36/S23, or any other file that `difflogic simplify`
    reads. All engines give the same bits as the trained circuit. Ctrl-C stops the simulation, and its last state is
    still written.

    Example: difflogic simulate runs/NAME --size 4096x4096 --steps 1000 -o last.png
    """
    from difflogic.circuits.readers import source as sources
    from difflogic.circuits.simulation import engines, starts
    from difflogic.circuits.simulation.loop import Repetition, advance
    from difflogic.circuits.simulation.results import Recording
    from difflogic.cli.screen import simulation
    from difflogic.core import bernoulli, rules
    from difflogic.system.memory import free_memory
    from difflogic.train.signals import StopSignals

    units = bernoulli.probability("--density", options["density"], least=0)
    boundary, extent = options["boundary"], None if start is None else starts.start_file(start)
    is_periodic = boundary == "periodic" if boundary is not None else extent and extent.is_periodic
    source = sources.load(circuit, is_periodic, options["visible"])
    show_choice(source.told)
    scenario = source.netlist.scenario
    start = start or ("random" if scenario is None else scenario.start)
    # A rule may name its grid. The grid on which a run was trained is ignored, since simulations use larger grids.
    rule_size = None if source.config is None else rules.bounds(source.config.task.rule)[2]
    if scenario is not None and source.kind == "a rule":
        rule_size = scenario.height, scenario.width
    size = options["size"] or (extent and extent[:2]) or rule_size
    spec, live, every = _spec(source, size, options["fire_rate"], options["seed"]), options["live"], options["every"]
    engine, repetition = options["engine"], Repetition.of(options["until"], spec)
    recording = None if out is None else Recording(out, spec, steps, None if live else every)
    # The size is checked before anything is allocated: a side of a million cells is probably a typing error.
    engines.check_fits(spec, free_memory(), engine, recording.held_bytes if recording else 0)
    watcher = simulation.choose(as_json, live, recording, every)
    opened = engines.open_simulation(spec, starts.planes_of(spec, start, units), engine, steps)
    # The loop tests for Ctrl-C between two calls, so that the state after a complete step is written.
    with watcher.sink, StopSignals() as signals:
        watcher.began(source, start, opened)
        progress = advance(opened.simulation, steps, watcher, lambda: signals.received is not None, repetition)
        watcher.ended(progress, opened.simulation, signals.received, repetition.period if repetition else None)
    opened.simulation.close()
    return 0 if signals.received is None else SIGNAL_BASE + signals.received


def _spec(source: LoadedCircuit, size: tuple[int, int] | None, fire_rate: float | None, seed: int) -> SimulationSpec:
    """Return the specification of a simulation: the circuit without dead gates, grid, fire rate and seed."""
    from difflogic.circuits.synthesis.convert import lean
    from difflogic.core import bernoulli
    from difflogic.engine.simulation import SimulationSpec

    height, width = size or (1 if source.netlist.neighbourhood == "line" else DEFAULT_SIDE, DEFAULT_SIDE)
    if fire_rate is None:
        fire_rate = 1.0 if source.netlist.scenario is None else source.netlist.scenario.fire_rate
    # Constants, pass-throughs and dead gates cost time in every cell of every step.
    rate = bernoulli.probability("--fire-rate", fire_rate)
    return SimulationSpec(lean(source.netlist), height, width, rate, seed)
