"""`difflogic gallery`: write runs as a folder of static pages."""

from pathlib import Path

import click

from difflogic.cli.options import PATH, force_option, forced, show_choice
from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import FAILED, echo
from difflogic.errors import DifflogicError
from difflogic.system.files import check_links


@click.command("gallery")
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN...")
@click.option("--out", "-o", type=PATH, default=Path("gallery"), show_default=True, help="The folder to write.")
@force_option
def command(runs: tuple[Path, ...], out: Path) -> int:
    """Write a gallery of runs: a folder of pages for any web server, which can also be opened from the disk.

    RUN is a run folder, or a folder that contains runs. The page of a run shows the running automaton from its
    trained initial state, an animation, losses, gates and circuit, and the results of `difflogic evaluate` if there
    are any. It also offers the circuit, simplified and proved equal, in every format that supports it. The page of
    agents shows an episode of the best agent, the returns and the controller. A run that cannot be shown is reported
    and left out, and the exit code is then 1.

    Example: difflogic gallery runs/NAME --out gallery
    """
    from difflogic.circuits.readers.source import is_of_agents
    from difflogic.circuits.synthesis.simplify import PassReport, silent
    from difflogic.evaluation import agent_exhibit, gallery

    def report(step: PassReport) -> None:
        sinks.show_pass(step)
        silent(step)  # Ctrl-C ends the command

    gallery.check_out(out, forced())
    folders = gallery.runs_in(runs)
    exhibits = []
    for run, name in gallery.names_of(folders):
        try:
            check_links(run)
            exhibit = (agent_exhibit if is_of_agents(run) else gallery).exhibit(run, name, report)
        # A run that cannot be shown does not prevent pages of other runs.
        except DifflogicError as error:
            echo(f"{run}: left out. {error}", err=True)
            continue
        show_choice(exhibit.told)
        gallery.write_exhibit(out, exhibit)
        exhibits.append(exhibit)
        echo(f"{run}: {exhibit.title}: {exhibit.counts}")
    if exhibits:
        gallery.write_index(out, exhibits)
        echo(f"Written: {out / gallery.INDEX}, {len(exhibits)} of {len(folders)} runs")
    return FAILED if len(exhibits) < len(folders) else 0
