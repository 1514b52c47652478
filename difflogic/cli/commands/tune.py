"""`difflogic tune`: find the fastest workgroup sizes of an adapter, and save them."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import json_option
from difflogic.cli.screen import sinks, table
from difflogic.cli.screen.echo import echo
from difflogic.cli.work import work, work_options
from difflogic.system.words import counted

if TYPE_CHECKING:
    from difflogic.devices.tune import SweepProgress, TuningResult


@click.command("tune")
@work_options
@click.option("--population", type=int, default=1, metavar="M", help="Tune for `train --population M`.")
@click.option("--adapter", metavar="INDEX|NAME", help="The adapter to tune (default: the first).")
@click.option("--reset", is_flag=True, help="Delete the stored results for this adapter, and exit.")
@json_option
def command(population: int, adapter: str | None, reset: bool, as_json: bool, **options: Any) -> None:
    """Find the fastest workgroup sizes for training on an adapter.

    PRESET is a name that `difflogic presets` lists [checkerboard], RUN a run folder. Every variant is verified before
    it is timed, and replaces the default only if it is 5 % faster. The result is saved for this adapter, driver and
    shape of work, which includes the number of models. Training then uses it, and computes the same. A second run shows
    the saved times. If a run was stopped, the next one continues it.

    Example: difflogic tune lizard
    """
    from difflogic.devices import selftest
    from difflogic.devices.tune import Tuner, sizes_of
    from difflogic.gpu import tuning_cache
    from difflogic.gpu.adapter import select_adapter
    from difflogic.gpu.device import GpuDevice
    from difflogic.gpu.launch import FUSED

    chosen = select_adapter(adapter)
    if reset:
        forgotten, cut_off = tuning_cache.reset(chosen)
        report = json.dumps({"adapter": chosen.name, "forgotten": forgotten, "cut_off": cut_off})
        more = f", and {counted(cut_off, 'unfinished sweep')}" if cut_off else ""
        echo(report if as_json else f"Deleted {counted(forgotten, 'result')} of {chosen.name}{more}.")
        return
    config = work(options).config
    # A kernel that computes wrong results may be the fastest, so tuning needs a working adapter.
    selftest.require(chosen)
    sink = sinks.choose(as_json, "variant")

    def notify(text: str, progress: SweepProgress | None) -> None:
        if not as_json:  # with --json, only the result is printed
            sink.show(sinks.Event("note", {"text": text}, [text]))
            if progress is not None:
                sink.advance(progress.done, progress.total)

    tuner = Tuner(GpuDevice(chosen), config, notify, population)
    notify(f"{chosen.name} ({chosen.backend}, {chosen.driver}): {sizes_of(tuner.plan, tuner.groups)}", None)
    if chosen.software:
        notify("This is a software adapter: tuning is not worthwhile, because --engine cpu is faster.", None)
    try:
        with sink:
            outcome = tuner.run()
    except KeyboardInterrupt:
        notify(f"Stopped: {counted(len(tuner.measured.seconds), 'variant')} saved; tune again to continue.", None)
        raise
    if as_json:
        echo(json.dumps(dataclasses.asdict(outcome) | {"variants": tuner.measured.variants()}))
        return
    rows = [
        (str(launch.workgroup_size), launch.chunks, *(f"{1e3 * seconds[kernel]:.2f}" for kernel in FUSED))
        for launch, seconds in tuner.measured.seconds.items()
    ]
    table.show(("workgroup size", "chunks", *FUSED), rows, "Milliseconds of a kernel:")
    echo(_describe(outcome))


def _describe(outcome: TuningResult) -> str:
    stored = outcome.stored
    how = f"{outcome.measured} variants measured" if outcome.measured else "saved earlier, nothing measured"
    if stored.launch == outcome.default:
        return f"The default stays: {stored.launch.described()} ({how})."
    gain = stored.default_ms / stored.tuned_ms
    return (
        f"The fastest is {gain:.2f} times as fast as the default: {stored.launch.described()} "
        f"({stored.default_ms:.2f} -> {stored.tuned_ms:.2f} ms per train step; {how}). Training uses it from now on."
    )
