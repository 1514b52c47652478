"""`difflogic submit`, `jobs`, `watch`, `logs`, `cancel` and `fetch`: use a server as a client."""

import itertools
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import options as shared
from difflogic.cli import request
from difflogic.cli.options import PATH, client, json_option, options_of, quick_option, together
from difflogic.cli.screen import table
from difflogic.cli.screen.echo import echo
from difflogic.cli.training import policy
from difflogic.config import follow_ups
from difflogic.config.fields import Table, section
from difflogic.config.request import Request, SweepRequest
from difflogic.errors import UsageError
from difflogic.serve.store.jobs import KINDS, PRIORITIES, SORTS, STATUSES, JobRequest, Sort

if TYPE_CHECKING:
    from difflogic.serve.client import Client

HEADERS = ("job", "name", "kind", "state", "progress", "soft loss", "hard loss", "solved", "on", "submitted", "tags")
job_argument = click.argument("job")
jobs_argument = click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
watch_option = click.option("--watch", is_flag=True, help="Watch the job, as `difflogic watch` does.")


@click.command("submit", cls=shared.TrainingCommand)
@click.argument("preset", required=False)
@shared.config_option
@shared.set_option
@shared.target_options
@shared.agent_options
@shared.table_options
@shared.options_of("what", without=shared.GIVEN_OTHERWISE)
@shared.field_options
@shared.gpu_option
@shared.options_of("run", "until", without=("starts",))
@shared.sweep_options
@shared.options_of("queue", request=JobRequest, without=("sweep", "label"))
@watch_option
@json_option
def submit(**options: Any) -> int:
    """Submit a training job to the server DIFFLOGIC_SERVER, with the token DIFFLOGIC_TOKEN, and print the job's id.

    \b
    Example: difflogic submit --target cat.png --watch
    Example: difflogic submit checkerboard --over seed=0..7 --gpu --watch
    Example: difflogic submit --data species.csv --label species

    The options are those of `difflogic train`. The command reads files on this machine, and sends the complete
    configuration. With --over it submits a sweep as one job.
    """  # noqa: D301
    options["engine"] = shared.engine_selector(options["engine"], options["gpu"])
    config, rows, others = policy(options)
    job_request = _automata(options) if config is None else _request(others, preset=None, config=config, set=Table())
    with client("submit") as server:
        job = server.submit(job_request.to_dict(), None if rows is None else rows.encode())
        if options["watch"]:
            return _follow(server, job["id"], options["as_json"])
        echo(json.dumps(job) if options["as_json"] else job["id"])
        return 0


def _follow(server: "Client", job: str, as_json: bool = False, log_interval: int = 10) -> int:
    from difflogic.cli.screen.following import follow  # its modules need the extra `serve`

    return follow(server, job, as_json, log_interval)


def _request(options: Mapping[str, Any], **others: Any) -> JobRequest:
    """Return the job request for the command's options; `others` replace options. Raises UsageError or ConfigError."""
    sweep = request.request_fields(options, SweepRequest)
    if options["name"] is None and options["target"] is not None:  # the web page uses the same default name
        others["name"] = options["target"].stem[:100]
    if options["over"]:
        others["sweep"] = SweepRequest(**sweep | {"over": Table(request.axes(options["over"]))})
    elif sweep:
        raise UsageError(f"{request.written(next(iter(sweep)))} requires a sweep: give --over FIELD=VALUES.")
    return request.requested(JobRequest, options, **others)


def _automata(options: dict[str, Any]) -> JobRequest:
    from difflogic.config import kept_starts
    from difflogic.config.customise import configure, recipe_of
    from difflogic.train import reach, run_request

    # Files are read on this machine, so that errors in files are reported before anything is sent.
    job_request = _request(options)
    if job_request.sweep is not None:
        # The sweep applies the recipe and the fields to each trial.
        configured = configure(replace(job_request, set=Table(), recipe="paper"))
        return replace(job_request.configured(configured.config), set=job_request.set, recipe=recipe_of(job_request))
    configured = configure(job_request)
    kept_starts.refuse(configured.config)
    job_request, notice = run_request.resolved(configured.request, configured.config)
    for sentence in (request.changes(configured), notice, reach.notice(configured.config)):
        if sentence and not options["as_json"]:
            echo(request.in_options(sentence), err=True)
    return job_request.configured(configured.config)


@click.group("jobs", invoke_without_command=True)
@click.option("--status", type=click.Choice(STATUSES), help="Only jobs in this state.")
@click.option("--kind", type=click.Choice(KINDS), help="Only jobs of this kind.")
@click.option("--tag", help="Only jobs that have this tag.")
@click.option("--search", "q", metavar="TEXT", help="Only jobs with this text in their name or id.")
@click.option("--sort", type=click.Choice(SORTS), default="newest", show_default=True, help="The order of the list.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Maximum number of jobs.")
@json_option
@click.pass_context
def list_jobs(ctx: click.Context, /, sort: Sort, limit: int, as_json: bool, **filters: str | None) -> None:
    """List your jobs on the server DIFFLOGIC_SERVER, or change one of them.

    Example: difflogic jobs --status running

    Example: difflogic jobs rename abcdefghijklmnop "the large board"
    """
    if ctx.invoked_subcommand is not None:
        return
    with client("jobs") as server:
        # The server sends the list in pages of at most 200 jobs.
        jobs = list(itertools.islice(server.jobs(**filters, sort=sort, limit=min(limit, 200)), limit))
    if as_json:
        for job in jobs:
            echo(json.dumps(job))
        return
    if not jobs:
        echo("No jobs match." if any(filters.values()) else "There are no jobs yet.")
        return
    table.show(HEADERS, [_row(job) for job in jobs])
    for job in jobs:
        if reason := job["waits_for"] or job["words"]["turn"]:
            echo(f"{job['id']} is waiting: {reason.rstrip('.')}.")


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    return (
        job["id"],
        job["name"],
        job["kind"],
        job["words"]["state"].lower(),
        job["words"]["progress"],
        *table.loss_cells(job["soft_loss"], job["hard_loss"], job["solved"], job["request"].get("population", 1)),
        job["device"] or "",
        job["created"][:16].replace("T", " "),
        ", ".join(job["tags"]),
    )


# difflogic jobs ACTION: change jobs, and queue jobs based on other jobs ---------------------------------


def _command(name: str, about: str, example: str) -> Callable[[Any], click.Command]:
    return click.command(name, help=f"{about}\n\nExample: difflogic jobs {name} {example}")


def _steering(action: str, state: str, about: str) -> click.Command:
    """Return a command that applies `action` to jobs; `state`, such as "is paused", is its message for idle jobs."""

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
    """Return a command that changes a field of a job: `value` is the click argument, `result` formats the message."""

    @_command(action, about, example)
    @job_argument
    @value
    def command(job: str, **changes: Any) -> None:
        with client("jobs") as server:
            echo(f"{job} {result.format(**server.edit(job, **changes))}")

    return command


def _making(action: str, example: str, *options: Callable[[Any], Any]) -> click.Command:
    """Return a command that queues a job based on another job; without `options`, it has those of the request class."""
    part = follow_ups.REQUESTS.get(action, Clone)

    @_command(action, f"{(part.__doc__ or '').rstrip('.')}, and print its id.", f"abcdefghijklmnop{example}")
    @job_argument
    @together(*(options or [options_of(action, request=part)]), watch_option)
    def command(job: str, watch: bool, **options: Any) -> int:
        body = part(**{name: value for name, value in options.items() if value is not None}).to_dict()
        with client("jobs") as server:
            new_job = server.make(job, action, body)["id"]
            if watch:
                return _follow(server, new_job)
            echo(new_job)
            return 0

    return command


@section
class Clone(Request):
    """Queue a new job with the settings of JOB."""


def _tagging(action: str, change: Callable[[list[str], str], list[str]], result: str, about: str) -> click.Command:
    """Return a command that sets the tags of jobs to `change(tags, tag)`; it prints `result`, such as "no tag"."""

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


for _action in (
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
):
    list_jobs.add_command(_action)


@click.command("watch")
@job_argument
@click.option("--log-interval", type=click.IntRange(1), default=10, show_default=True, help="Epochs between log lines.")
@json_option
def watch(job: str, log_interval: int, as_json: bool) -> int:
    """Report JOB until it ends, as if it ran on this machine. Ctrl-C stops the reports, not the job.

    While the server cannot be reached, the command keeps trying. The exit code is 0 if the job is done. It is 1 if the
    job failed, was cancelled, or reached its limit unsolved.

    Example: difflogic watch abcdefghijklmnop
    """
    with client("watch") as server:
        return _follow(server, job, as_json, log_interval)


@click.command("logs")
@job_argument
@click.option(
    "--tail", type=click.IntRange(1, 1 << 20), default=1 << 16, show_default=True, help="Number of bytes to print."
)
def logs(job: str, tail: int) -> None:
    """Print the end of JOB's log, which its workers wrote.

    Example: difflogic logs abcdefghijklmnop
    """
    with client("logs") as server:
        echo(server.log(job, tail), nl=False)


@click.command("cancel")
@jobs_argument
def cancel(jobs: tuple[str, ...]) -> None:
    """Stop JOB: immediately if it is queued, otherwise after the current epochs, with a checkpoint.

    Example: difflogic cancel abcdefghijklmnop
    """
    steer("cancel", "is cancelled", jobs)


@click.command("fetch")
@job_argument
@click.argument("folder", type=PATH)
def fetch(job: str, folder: Path) -> None:
    """Download the files of JOB to FOLDER, which must be new or empty.

    The files of a training job are a run folder for `difflogic show`, `evaluate`, `export` and `train --resume`.

    Example: difflogic fetch abcdefghijklmnop runs/mine
    """
    with client("fetch") as server, tempfile.TemporaryFile() as file:
        from difflogic.serve.client import check_new, unpack

        check_new(folder)
        server.archive(job, file)
        names = unpack(file, job, folder)
    echo(f"Wrote {len(names)} files to {folder}" if names else f"The job has no files yet: {folder} is empty.")
