"""`difflogic profile`: one train step, taken apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import engine_options, engine_selector, json_document_option, work_options
from difflogic.cli.request import work
from difflogic.cli.screen import table

if TYPE_CHECKING:
    from difflogic.bench.profile import Profile


@click.command("profile")
@work_options
@engine_options
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Measure this many rounds, and show the median.",
)
@json_document_option
def command(engine: str | None, gpu: bool, require_hardware: bool, rounds: int, as_json: bool, **options: Any) -> int:
    """Show where the time of one train step goes: per kernel, per phase, and what the host does around it.

    PRESET is a name that `difflogic presets` lists [checkerboard]. The device times its kernels itself if it can
    (timestamp queries). Otherwise the host's clock does.

    Example: difflogic profile lizard --gpu
    """
    from difflogic.bench.profile import profile
    from difflogic.devices.open import place
    from difflogic.engine.api import describe_engine
    from difflogic.engine.job import TrainState, make_job
    from difflogic.model.circuit import Circuit

    config = work(options)
    placement = place(engine_selector(engine, gpu) or "auto", require_hardware)
    circuit = Circuit.initial(config.model, config.seed)
    # Not through a Trainer: no folder, no evaluation, only the step itself.
    job = make_job(config, circuit)
    model = placement.engine.open([job], [TrainState.initial(job)])
    try:
        # The first steps compile shaders and warm caches: they are not what training is like.
        for _ in range(3):
            model.train(1)
            model.drain()
        found = profile(model, rounds)
    finally:
        model.close()
    if as_json:
        click.echo(json.dumps({"name": config.name, "adapter": model.info.adapter, **found.to_dict()}, indent=1))
    else:
        click.echo(f"{config.name}, batch {config.train.batch}, on {describe_engine(model.info)}; {found.how}")
        _show(found)
    return 0


def _show(found: Profile) -> None:
    from difflogic.bench.profile import ATTRIBUTED, bottleneck

    def timed(seconds: float) -> tuple[str, str]:
        return f"{1e3 * seconds:.3f}", f"{100 * seconds / found.wall:.1f} %"

    parts = [(part.name, part.phase, str(part.count), *timed(part.seconds)) for part in found.parts]
    table.show(("part", "phase", "times", "ms", "share"), parts)
    click.echo("")
    table.show(("phase", "ms", "share"), [(name, *timed(seconds)) for name, seconds in found.phases.items()])
    click.echo(f"\nOne train step takes {1e3 * found.wall:.3f} ms; the parts account for {found.share:.0%} of it.")
    if found.share < ATTRIBUTED:
        click.echo(
            "That is little: the machine was busy with something else, or the driver does work that cannot be measured."
        )
    click.echo(f"Limited by: {bottleneck(found)}")
