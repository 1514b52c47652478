"""`difflogic submit`, `jobs`, `watch`, `logs`, `cancel` and `fetch`: use a server as a client."""

import itertools
import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from difflogic.cli import options as shared
from difflogic.cli import request
from difflogic.cli.commands import job_actions
from difflogic.cli.options import PATH, client, json_option
from difflogic.cli.screen import table
from difflogic.cli.screen.echo import echo
from difflogic.cli.training import policy
from difflogic.config.fields import Table
from difflogic.config.request import SweepRequest
from difflogic.errors import UsageError
from difflogic.serve.store.jobs import KINDS, SORTS, STATUSES, JobRequest, Sort

HEADERS = ("job", "name", "kind", "state", "progress", "soft loss", "hard loss", "solved", "on", "submitted", "tags")


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
@job_actions.watch_option
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
        if not options["watch"]:
            echo(json.dumps(job) if options["as_json"] else job["id"])
            return 0
        from difflogic.cli.screen.following import follow

        return follow(server, job["id"], options["as_json"])


def _request(options: Mapping[str, Any], **others: Any) -> JobRequest:
    """Return the job request for the command's options; `others` replace options. Raises UsageError or ConfigError."""
    sweep = request.request_fields(options, SweepRequest)
    if options["name"] is None and options["target"] is not None:  # the page uses the same name
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


for _action in job_actions.ACTIONS:
    list_jobs.add_command(_action)


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


@click.command("watch")
@click.argument("job")
@click.option("--log-interval", type=click.IntRange(1), default=10, show_default=True, help="Epochs between log lines.")
@json_option
def watch(job: str, log_interval: int, as_json: bool) -> int:
    """Report JOB until it ends, as if it ran on this machine. Ctrl-C stops the reports, not the job.

    While the server cannot be reached, the command keeps trying. The exit code is 0 if the job is done. It is 1 if the
    job failed, was cancelled, or reached its limit unsolved.

    Example: difflogic watch abcdefghijklmnop
    """
    with client("watch") as server:
        from difflogic.cli.screen.following import follow

        return follow(server, job, as_json, log_interval)


@click.command("logs")
@click.argument("job")
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
@job_actions.jobs_argument
def cancel(jobs: tuple[str, ...]) -> None:
    """Stop JOB: immediately if it is queued, otherwise after the current epochs, with a checkpoint.

    Example: difflogic cancel abcdefghijklmnop
    """
    job_actions.steer("cancel", "is cancelled", jobs)


@click.command("fetch")
@click.argument("job")
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
