"""The entry point: finds the subcommand and turns every expected failure into one sentence."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

import difflogic
from difflogic.errors import DifflogicError

COMMANDS = {
    "train": ("difflogic.cli.train", "Train a preset, a file, or your own picture or rule."),
    "presets": ("difflogic.cli.presets", "List the presets."),
    "init": ("difflogic.cli.init", "Write a preset as a file to change."),
    "train-checkerboard": ("difflogic.cli.train_checkerboard", "Train the paper's checkerboard."),
    "export": ("difflogic.cli.export", "Write a circuit for other programs, hardware and the web."),
    "gallery": ("difflogic.cli.gallery", "Write runs as a folder of pages for any web server."),
    "harden": ("difflogic.cli.harden", "Settle the undecided gates of a run."),
    "evaluate": ("difflogic.cli.evaluate", "Test what a run became, far beyond its training."),
    "render": ("difflogic.cli.render", "Draw a run: rollouts, gates, losses."),
    "runs": ("difflogic.cli.runs", "List run folders."),
    "show": ("difflogic.cli.show", "Print one run in full."),
    "simulate": ("difflogic.cli.simulate", "Run a hard circuit on a large grid, at billions of cells per second."),
    "devices": ("difflogic.cli.devices", "List the GPU adapters."),
    "plan": ("difflogic.cli.plan", "Print the device memory that training would take."),
    "tune": ("difflogic.cli.tune", "Find the fastest workgroup sizes for an adapter."),
    "doctor": ("difflogic.cli.doctor", "Check the installation and test each adapter."),
    "check-grad": ("difflogic.cli.check_grad", "Compare the gradients of the engines on a run's circuit."),
    "simplify": ("difflogic.cli.simplify", "Make a circuit smaller, proved to be the same."),
    "prove": ("difflogic.cli.prove", "Prove that two circuits are the same, or show where they differ."),
    "serve": ("difflogic.cli.serve", "Serve a queue of trainings, and a page to watch them."),
    "worker": ("difflogic.cli.worker", "Train the jobs of a store, beside its server's workers."),
    "gc": ("difflogic.cli.gc", "Delete old jobs of a store."),
    "backup": ("difflogic.cli.backup", "Copy a store that is in use."),
    "submit": ("difflogic.cli.submit", "Give a training to a server."),
    "jobs": ("difflogic.cli.jobs", "List the jobs on a server."),
    "watch": ("difflogic.cli.watch", "Follow a job on a server."),
    "logs": ("difflogic.cli.logs", "Print the log of a job on a server."),
    "cancel": ("difflogic.cli.cancel", "Stop a job on a server."),
    "fetch": ("difflogic.cli.fetch", "Take the files of a job from a server."),
    "bench": ("difflogic.cli.bench", "Measure the engines that are here, and compare measurements."),
    "profile": ("difflogic.cli.profile", "Show where the time of a train step goes."),
}
"""Name: the module with a click command called `command`, and its line in `difflogic --help`."""

INTERRUPTED = 130


class LazyGroup(click.Group):
    """Imports a subcommand's module only to run it, so that help and version answer at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(difflogic.__version__, message="difflogic %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Differentiable logic cellular automata: train, run and ship them."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 (failed), 2 (usage), 128 + a signal's number."""
    try:
        result = group.main(arguments, prog_name="difflogic", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as error:
        return _fail(_sentence(error), error.exit_code)
    except DifflogicError as error:
        return _fail(str(error), error.exit_code)
    except MemoryError as error:
        return _fail(f"Not enough memory: {error}. Use a smaller batch or model.")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}.")
    return result if isinstance(result, int) else 0


def _sentence(error: click.ClickException) -> str:
    """What click has to say, with the place to look it up."""
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "difflogic"
    return f"{error.format_message()} See '{path} --help'."


def _fail(message: str, exit_code: int = 1) -> int:
    click.echo(f"Error: {message}", err=True)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
