"""`difflogic jobs ACTION`: what is done with jobs on a server, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from difflogic.cli.options import client
from difflogic.cli.screen import table
from difflogic.errors import UsageError
from difflogic.serve.store.jobs import PRIORITIES

Function = TypeVar("Function", bound=Callable[..., Any])

jobs_argument = click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
watch_option = click.option("--watch", is_flag=True, help="Follow the job at once, as `difflogic watch` does.")
OVER = {"cancel": "is cancelled", "pause": "is paused", "resume": "goes on", "retry": "is queued again"}
"""What a job is after an action; one that still runs saves first."""


def steer(action: str, jobs: tuple[str, ...]) -> None:
    """Ask an action of jobs, one after another, and say what each is then."""
    with client("jobs") as server:
        for job in jobs:
            found = server.steer(job, action)
            click.echo(f"{job} is asked to stop, and will save first." if found["wanted"] else f"{job} {OVER[action]}.")


@click.command("pause")
@jobs_argument
def pause(jobs: tuple[str, ...]) -> None:
    """Stop JOB with a checkpoint, from which `difflogic jobs resume` goes on.

    Example: difflogic jobs pause abcdefghijklmnop
    """
    steer("pause", jobs)


@click.command("resume")
@jobs_argument
def resume(jobs: tuple[str, ...]) -> None:
    """Queue a paused JOB again; it goes on from its checkpoint, bit for bit.

    Example: difflogic jobs resume abcdefghijklmnop
    """
    steer("resume", jobs)


@click.command("retry")
@jobs_argument
def retry(jobs: tuple[str, ...]) -> None:
    """Queue a failed or cancelled JOB again; it goes on from its checkpoint.

    Example: difflogic jobs retry abcdefghijklmnop
    """
    steer("retry", jobs)


@click.command("rename")
@click.argument("job")
@click.argument("name")
def rename(job: str, name: str) -> None:
    """Call JOB by another NAME.

    Example: difflogic jobs rename abcdefghijklmnop "the large board"
    """
    _edit(job, "is called {name}.", name=name)


@click.command("note")
@click.argument("job")
@click.argument("text")
def note(job: str, text: str) -> None:
    """Write TEXT to JOB, instead of what was written to it; `difflogic jobs --search` finds it by that too.

    Example: difflogic jobs note abcdefghijklmnop "for the paper"
    """
    _edit(job, "has this note.", note=text)


@click.command("tag")
@click.argument("word", metavar="TAG")
@jobs_argument
def tag(word: str, jobs: tuple[str, ...]) -> None:
    """Give JOB a tag, beside those that it has; `difflogic jobs --tag TAG` lists all that have it.

    Example: difflogic jobs tag "for the paper" abcdefghijklmnop
    """
    _tag(jobs, lambda tags: [*tags, word], f"has the tag {word}")


@click.command("untag")
@click.argument("word", metavar="TAG")
@jobs_argument
def untag(word: str, jobs: tuple[str, ...]) -> None:
    """Take a tag from JOB.

    Example: difflogic jobs untag "for the paper" abcdefghijklmnop
    """
    _tag(jobs, lambda tags: [each for each in tags if each != word], f"has no tag {word}")


def _tag(jobs: tuple[str, ...], changed: Callable[[list[str]], list[str]], words: str) -> None:
    with client("jobs") as server:
        for job in jobs:
            server.edit(job, tags=changed(server.job(job)["tags"]))
            click.echo(f"{job} {words}.")


@click.command("priority")
@click.argument("job")
@click.argument("number", type=click.IntRange(PRIORITIES[0], PRIORITIES[-1]))
def priority(job: str, number: int) -> None:
    """Give JOB another priority; higher ones are taken first. A negative NUMBER comes after two dashes.

    Example: difflogic jobs priority abcdefghijklmnop -- -5
    """
    _edit(job, "has the priority {priority}.", priority=number)


def _edit(job: str, words: str, **changes: Any) -> None:
    with client("jobs") as server:
        click.echo(f"{job} {words.format(**server.edit(job, **changes))}")


@click.command("share")
@click.argument("job")
@click.option("--for", "label", metavar="NAME", help="For whom the link is.")
@click.option("--days", type=click.FloatRange(0, 3650, min_open=True), default=30, show_default=True, help="It lasts.")
def share(job: str, label: str | None, days: float) -> None:
    """Print a link that opens JOB to whoever has it, to be read; it is shown only now.

    Example: difflogic jobs share abcdefghijklmnop --for "the reviewers"
    """
    with client("jobs") as server:
        click.echo(f"{server.server}/{server.share(job, label=label, days=days)['path']}")


@click.command("links")
@click.argument("job")
def links(job: str) -> None:
    """List the links that open JOB, which `difflogic jobs revoke` ends.

    Example: difflogic jobs links abcdefghijklmnop
    """
    with client("jobs") as server:
        found = server.shares(job)
    if not found:
        click.echo("There are no links to this job.")
        return
    rows = [(each["id"], each["label"], each["created"][:10], (each["expires"] or "never")[:10]) for each in found]
    table.show(("link", "for", "made", "until"), rows)


@click.command("revoke")
@click.argument("job")
@click.argument("link")
def revoke(job: str, link: str) -> None:
    """End a LINK to JOB, as `difflogic jobs links` lists it: it opens nothing any more.

    Example: difflogic jobs revoke abcdefghijklmnop ponmlkjihgfedcba
    """
    with client("jobs") as server:
        server.unshare(job, link)
        click.echo(f"{link} opens nothing any more.")


@click.command("delete")
@jobs_argument
@click.option("--yes", is_flag=True, help="Do not ask first.")
def delete(jobs: tuple[str, ...], yes: bool) -> None:
    """Remove JOB and all its files from the server, which cannot be undone; one that runs must be cancelled.

    Example: difflogic jobs delete abcdefghijklmnop
    """
    with client("jobs") as server:
        # All are looked up before the first is gone: a misspelled one removes nothing.
        names = [server.job(job)["name"] for job in jobs]
        if not yes and not click.confirm(f"Remove {', '.join(names)} and all files of it?", err=True):
            raise UsageError("Nothing was removed: confirm it, or give --yes.")
        for job in jobs:
            server.delete(job)
            click.echo(f"{job} is removed.")


@click.command("clone")
@click.argument("job")
@watch_option
def clone(job: str, watch: bool) -> int:
    """Queue a new job that does the same as JOB; prints its id.

    Example: difflogic jobs clone abcdefghijklmnop
    """
    return _make(job, "clone", {}, watch)


@click.command("harden")
@click.argument("job")
@click.option("--search", is_flag=True, help="Search the hard circuit instead, without gradients.")
@click.option("--epochs", type=click.IntRange(1), help="Epochs of the hardening [a quarter of the run's].")
@watch_option
def harden(job: str, search: bool, epochs: int | None, watch: bool) -> int:
    """Queue a training that settles the undecided gates of JOB, as `difflogic harden` does; prints its id.

    Example: difflogic jobs harden abcdefghijklmnop --watch
    """
    return _make(job, "harden", {"search": search, "epochs": epochs}, watch)


@click.command("simplify")
@click.argument("job")
@click.option("--from-start", is_flag=True, help="Keep what comes of its own start, on any grid, for ever; proved too.")
@click.option("--task", is_flag=True, help="Keep the trained behaviour alone, and nothing else.")
@watch_option
def simplify(job: str, from_start: bool, task: bool, watch: bool) -> int:
    """Queue a job that makes the circuit of JOB smaller, proved to be the same; prints its id.

    Example: difflogic jobs simplify abcdefghijklmnop --watch
    """
    return _make(job, "simplify", {"from_start": from_start, "task": task}, watch)


@click.command("prove")
@click.argument("job")
@click.option("--every-start", is_flag=True, help="Of a training: prove that every start ends in the task's target.")
@watch_option
def prove(job: str, every_start: bool, watch: bool) -> int:
    """Queue a job that proves what the circuit of JOB does, of a simplification that it is the same; prints its id.

    Example: difflogic jobs prove abcdefghijklmnop --watch
    """
    return _make(job, "prove", {"every_start": every_start}, watch)


@click.command("export")
@click.argument("job")
@click.option(
    "--format",
    "formats",
    metavar="FORMAT",
    multiple=True,
    required=True,
    help="A format of `difflogic export`; may be repeated.",
)
@watch_option
def export(job: str, formats: tuple[str, ...], watch: bool) -> int:
    """Queue a job that writes the circuit of JOB in other formats, those of `difflogic export`; prints its id.

    Example: difflogic jobs export abcdefghijklmnop --format c --format svg --watch
    """
    from difflogic.circuits.export.formats import FORMATS

    for each in formats:
        if each not in FORMATS:
            raise UsageError(f"{each!r} is not a format: expected one of {', '.join(FORMATS)}.")
    return _make(job, "export", {"formats": list(formats)}, watch)


@click.command("evaluate")
@click.argument("job")
@click.option("--quick", is_flag=True, help="Use fewer starts, and make long tests a tenth as long.")
@watch_option
def evaluate(job: str, quick: bool, watch: bool) -> int:
    """Queue a job that tests the circuit of JOB far beyond its training; prints its id.

    Example: difflogic jobs evaluate abcdefghijklmnop --quick --watch
    """
    return _make(job, "evaluate", {"quick": quick}, watch)


def _make(job: str, action: str, body: dict[str, Any], watch: bool) -> int:
    """Queue a job that is made of another one; print its id, or follow it."""
    with client("jobs") as server:
        made = server.make(job, action, body)
        if not watch:
            click.echo(made["id"])
            return 0
        from difflogic.cli.screen.following import follow

        return follow(server, made["id"], as_json=False)


ACTIONS = (
    pause, resume, retry, rename, note, tag, untag, priority, share, links, revoke, delete, clone, harden, simplify,
    prove, export, evaluate,
)  # fmt: skip
