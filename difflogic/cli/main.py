"""Entry point of the command line, which runs a subcommand and prints each expected error as one sentence."""

import importlib
import sys
from collections.abc import Sequence

import click

from difflogic.cli.screen.echo import FAILED, INTERRUPTED, StandardStream, echo, prepare_streams
from difflogic.errors import DifflogicError
from difflogic.version import __version__

GROUPS = {
    "Train": {
        "train": ("train:command", "Train a preset, a file, or your own image or rule."),
        "presets": ("presets:command", "List the presets."),
        "init": ("init:command", "Write a preset as a configuration file to edit."),
        "train-checkerboard": ("train:checkerboard", "Train the paper's checkerboard."),
        "train-policy": ("train:policy", "Train an agent whose policy is a circuit of gates."),
        "sweep": ("sweep:command", "Train many runs that differ in some fields, and compare them."),
        "harden": ("train:harden", "Continue training a run until all of its gates have converged."),
    },
    "Look at runs": {
        "runs": ("runs:command", "List run folders."),
        "show": ("show:command", "Print one run in full."),
        "evaluate": ("evaluate:command", "Test a trained circuit far beyond its training."),
        "render": ("render:command", "Draw a run: rollouts, gates, losses."),
        "gallery": ("gallery:command", "Write runs as a folder of pages for any web server."),
    },
    "Work on a circuit": {
        "build": ("build:command", "Build a circuit without training, from a rule, a recording or an image."),
        "simplify": ("simplify:command", "Simplify a circuit, and prove that the result is equivalent."),
        "prove": ("prove:command", "Prove what a circuit does, or that two circuits are equivalent."),
        "export": ("export:command", "Write a circuit for other programs, hardware and the web."),
        "simulate": ("simulate:command", "Run a hard circuit on a large grid, at billions of cells per second."),
        "report": ("report:command", "Print the FPGA resources and the clock speed of a circuit."),
        "zoo": ("zoo:command", "List the circuits that come with difflogic, or show one."),
        "export-page": ("export:page", "Write a web page that trains presets on the visitor's graphics card."),
    },
    "Run and use a server": {
        "serve": ("serve:serve", "Serve a queue of training jobs, and a web page to watch them."),
        "gc": ("serve:gc", "Delete old jobs from a store."),
        "backup": ("serve:backup", "Back up a store, even while it is in use."),
        "submit": ("jobs:submit", "Submit a training job to a server."),
        "jobs": ("jobs:list_jobs", "List the jobs on a server."),
        "watch": ("jobs:watch", "Follow a job on a server."),
        "logs": ("jobs:logs", "Print the log of a job on a server."),
        "cancel": ("jobs:cancel", "Stop a job on a server."),
        "fetch": ("jobs:fetch", "Download the files of a job from a server."),
    },
    "Measure": {
        "doctor": ("doctor:command", "Check the installation, list and test the devices, plan their memory."),
        "bench": ("bench:command", "Measure the engines of this machine, kernel by kernel, and check their gradients."),
        "tune": ("tune:command", "Find the fastest workgroup sizes for an adapter."),
    },
}
"""Mapping from help sections to commands; each has a `module:function` in `cli.commands` and a line of help."""
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
PRINTING = {"presets", "runs", "show", "report", "zoo", "jobs", "watch", "logs", "doctor"}
"""Commands that stop when the reader of their output closes the pipe; other commands complete their work."""
GREETING = """Cells of a grid, each with the same few logic gates, learn to show an image.

  difflogic train checkerboard-small --until-solved   train a checkerboard
  difflogic train --target cat.png                    train your own image
  difflogic serve                                     do all this in a browser

difflogic --help lists every command."""


class LazyGroup(click.Group):
    """Click group that imports a subcommand's module only to run it, so that `--help` and `--version` are fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name.startswith("-"):
            return None  # click then reports an unknown option
        if cmd_name not in COMMANDS:
            from difflogic.config.fields import hint  # imported here, so that `difflogic --help` is fast

            raise click.UsageError(f"Unknown command {cmd_name!r}{hint(cmd_name, COMMANDS)}.", ctx)
        module, function = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(f"difflogic.cli.commands.{module}"), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Click itself would import every command for its line of help.
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="difflogic %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Differentiable logic cellular automata: train, run and ship them."""
    if ctx.invoked_subcommand is None:
        echo(GREETING)
    StandardStream.is_optional = ctx.invoked_subcommand not in {None, *PRINTING}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 (failed), 2 (usage), 128 + N (stopped by signal N)."""
    prepare_streams()
    try:
        # In standalone mode, click would end the process itself.
        result = group.main(arguments, prog_name="difflogic", standalone_mode=False)
    # Commands that can save their state catch Ctrl-C themselves.
    except (KeyboardInterrupt, click.Abort):
        echo("Interrupted.", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "difflogic"
        return _fail(f"{error.format_message()} See '{path} --help'.", error.exit_code)
    except DifflogicError as error:
        from difflogic.cli.request import in_options  # imported here, so that `difflogic --help` is fast

        return _fail(in_options(str(error)), error.exit_code)
    except MemoryError as error:
        return _fail(f"Not enough memory: {error}. Use a smaller batch or model.")
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        return _fail(f"{file}{error.strerror or error}.")
    return result if isinstance(result, int) else 0


def _fail(message: str, exit_code: int = FAILED) -> int:
    echo(f"Error: {message}", err=True)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
