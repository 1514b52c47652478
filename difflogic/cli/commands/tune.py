"""`difflogic tune`: measure which workgroup sizes are fastest on an adapter, and keep the answer."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import json_option, work_options
from difflogic.cli.request import work
from difflogic.cli.screen import sinks
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.devices.tune import Outcome


@click.command("tune")
@work_options
@click.option(
    "--population",
    type=int,
    default=1,
    metavar="M",
    help="Tune for `train --population M`. Several models may need other sizes than one [1].",
)
@click.option("--adapter", metavar="INDEX|NAME", help="The adapter to tune (default: the first).")
@click.option("--dry-run", is_flag=True, help="Print what would be measured, and measure nothing.")
@click.option("--reset", is_flag=True, help="Delete the stored results for this adapter, and exit.")
@json_option
def command(population: int, adapter: str | None, dry_run: bool, reset: bool, as_json: bool, **options: Any) -> None:
    """Find the fastest workgroup sizes for training on an adapter.

    PRESET is a name that `difflogic presets` lists [checkerboard]. Every variant is verified before it is timed. A
    variant must be 5 % faster to win. The winner is saved in the user's cache for this adapter, driver and shape of
    work, which includes the number of models. Training then uses it. It does not change the results of training. A
    second run measures nothing. If a run was stopped, the next one continues it.

    Example: difflogic tune lizard
    """
    from difflogic.cli.screen import tuning
    from difflogic.devices import selftest
    from difflogic.devices.tune import Tuner, TuningObserver, sizes_of
    from difflogic.gpu import tuning_cache
    from difflogic.gpu.adapter import select_adapter
    from difflogic.gpu.device import Device

    if reset and dry_run:
        raise UsageError("--reset forgets what was stored, and --dry-run changes nothing: give one of them.")
    chosen = select_adapter(adapter)
    if reset:
        forgotten, cut_off = tuning_cache.reset(chosen)
        report = json.dumps({"adapter": chosen.name, "forgotten": forgotten, "cut_off": cut_off})
        more = f", and {cut_off} sweep(s) that were cut off" if cut_off else ""
        click.echo(report if as_json else f"Forgot {forgotten} result(s) of {chosen.name}{more}.")
        return
    config = work(options)
    # A wrong result may be a fast one: only an adapter that passed the self-test is tuned.
    selftest.require(chosen)
    sink = sinks.choose(as_json, "variant")
    screen = TuningObserver() if as_json else tuning.TuningReporter(sink)  # its JSON is the result alone
    tuner = Tuner(Device(chosen), config, screen, population)
    screen.say(f"{chosen.name} ({chosen.backend}, {chosen.driver}): {sizes_of(tuner.plan, tuner.groups)}")
    if dry_run:
        for sweep in (sweep for family in tuner.families for sweep in family):
            sizes = ", ".join(str(launch.workgroup_size) for launch in sweep)
            screen.say(f"would measure lanes {sweep[0].chunks_per_workgroup:2}: workgroups of {sizes}")
    try:
        with sink:
            outcome = tuner.run(dry_run)
    except KeyboardInterrupt:
        screen.say(f"Stopped: {len(tuner.measured)} variant(s) measured so far are kept; tune again to go on.")
        raise
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(outcome)))
    else:
        click.echo(_verdict(outcome, dry_run))


def _verdict(outcome: Outcome, dry_run: bool) -> str:
    """Return what was found, in one or two sentences."""
    stored = outcome.stored
    if stored is None:
        return "Nothing is stored yet." if dry_run else "Nothing was found."
    how = f"{outcome.measured} variants measured" if outcome.measured else "stored before, nothing measured"
    if stored.launch == outcome.default:
        return f"The default schedule stays, {stored.launch} ({how})."
    gain = stored.default_ms / stored.tuned_ms
    return (
        f"{stored.launch} is {gain:.2f} times as fast as the default ({stored.default_ms:.2f} -> "
        f"{stored.tuned_ms:.2f} ms per train step; {how}). Training uses it from now on."
    )
