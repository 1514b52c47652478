"""`difflogic jobs ACTION`: change jobs on a server, and queue post-processing jobs."""

from collections.abc import Callable
from typing import Any

import click

from difflogic.cli.options import client, options_of, quick_option, together
from difflogic.cli.screen.echo import echo
from difflogic.config import follow_ups
from difflogic.config.fields import section
from difflogic.config.request import Request
from difflogic.errors import UsageError
from difflogic.serve.store.jobs import PRIORITIES

job_argument = click.argument("job")
jobs_argument = click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
watch_option = click.option("--watch", is_flag=True, help="Watch the job, as `difflogic watch` does.")


def _command(name: str, about: str, example: str) -> Callable[[Any], click.Command]:
    return click.command(name, help=f"{about}\n\nExample: difflogic jobs {name} {example}")


def _steering(action: str, state: str, about: str) -> click.Command:
    """Return a command that applies `action` to jobs; `state`, such as "is paused", describes jobs that do not run."""

    @_command(action, about, "abcdefghijklmnop")
    @jobs_argument
    def command(jobs: tuple[str, ...]) -> None:
        steer(action, state, jobs)

    return command


def steer(action: str, state: str, jobs: tuple[str, ...]) -> None:
    """Apply `action` to jobs, and print the new state of each; a running job stops after its next checkpoint."""
    with client("jobs") as server:
        for job in jobs:
            wanted = server.steer(job, action)["wanted"]
            echo(f"{job} {'will stop after it has saved a checkpoint' if wanted else state}.")


def _editing(action: str, value: Callable[[Any], Any], result: str, about: str, example: str) -> click.Command:
    """Return a command that sets the job's field named by the click argument `value`; `result` formats its message."""

    @_command(action, about, example)
    @job_argument
    @value
    def command(job: str, **changes: Any) -> None:
        with client("jobs") as server:
            echo(f"{job} {result.format(**server.edit(job, **changes))}")

    return command


def _making(action: str, example: str, *options: Callable[[Any], Any]) -> click.Command:
    """Return a command that queues a job based on another job; `options` replace those of the action's request."""
    part = follow_ups.REQUESTS.get(action, Clone)

    @_command(action, f"{(part.__doc__ or '').rstrip('.')}, and print its id.", f"abcdefghijklmnop{example}")
    @job_argument
    @together(*(options or [options_of(action, request=part)]), watch_option)
    def command(job: str, watch: bool, **options: Any) -> int:
        body = part(**{name: value for name, value in options.items() if value is not None}).to_dict()
        with client("jobs") as server:
            new_job = server.make(job, action, body)
            if not watch:
                echo(new_job["id"])
                return 0
            from difflogic.cli.screen.following import follow

            return follow(server, new_job["id"], as_json=False)

    return command


@section
class Clone(Request):
    """Queue a new job with the settings of JOB."""


def _tagging(action: str, change: Callable[[list[str], str], list[str]], result: str, about: str) -> click.Command:
    """Return a command that replaces the tags of jobs by `change(tags, tag)` and prints that each has `result` TAG."""

    @_command(action, about, '"for the paper" abcdefghijklmnop')
    @click.argument("tag")
    @jobs_argument
    def command(tag: str, jobs: tuple[str, ...]) -> None:
        with client("jobs") as server:
            for job in jobs:
                server.edit(job, tags=change(server.job(job)["tags"], tag))
                echo(f"{job} has {result} {tag}.")

    return command


@click.command("delete")
@jobs_argument
@click.option("--yes", is_flag=True, help="Do not ask first.")
def delete(jobs: tuple[str, ...], yes: bool) -> None:
    """Delete JOB and all its files from the server. This cannot be undone. Cancel a running job first.

    Example: difflogic jobs delete abcdefghijklmnop
    """
    with client("jobs") as server:
        # All jobs are read before any is deleted, so that a misspelled id deletes nothing.
        names = [server.job(job)["name"] for job in jobs]
        if not yes and not click.confirm(f"Delete {', '.join(names)} and all files?", err=True):
            raise UsageError("Nothing was deleted: confirm the deletion, or give --yes.")
        for job in jobs:
            server.delete(job)
            echo(f"{job} is deleted.")


ACTIONS = (
    _steering("pause", "is paused", "Stop JOB and save a checkpoint. `difflogic jobs resume` continues it."),
    _steering("resume", "is queued again", "Queue a paused JOB again. It continues from its checkpoint."),
    _steering("retry", "is queued again", "Queue a failed or cancelled JOB again. It continues from its checkpoint."),
    _editing("rename", click.argument("name"), "is called {name}.", "Rename JOB to NAME.", 'abcdefghijklmnop "board"'),
    _tagging("tag", lambda tags, tag: [*tags, tag], "the tag", "Add TAG to each JOB, for `difflogic jobs --tag TAG`."),
    _tagging("untag", lambda tags, tag: [old for old in tags if old != tag], "no tag", "Remove TAG from each JOB."),
    _editing(
        "priority",
        click.argument("priority", metavar="NUMBER", type=click.IntRange(PRIORITIES[0], PRIORITIES[-1])),
        "has the priority {priority}.",
        "Set the priority of JOB. Jobs with a higher priority start first. Write two dashes before a negative NUMBER.",
        "abcdefghijklmnop -- -5",
    ),
    delete,
    _making("clone", ""),
    _making("harden", " --watch"),
    _making("simplify", " --watch"),
    _making("build", " --watch"),
    _making("prove", " --watch"),
    _making("export", " --format c --format svg --watch"),
    # Unlike the page, the command runs the complete test by default.
    _making("evaluate", " --quick --watch", quick_option),
)
