"""`difflogic serve`, `gc` and `backup`: serve a store, clean it up, and copy it."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from contextlib import nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, force_option, json_option, megabytes, output, service, together
from difflogic.cli.screen.echo import echo
from difflogic.errors import UsageError
from difflogic.system.files import Output
from difflogic.system.words import counted

if TYPE_CHECKING:
    from difflogic.serve.api.settings import ServeSettings
    from difflogic.serve.api.tokens import Tokens


def environment(text: str) -> str:
    """Parse the name of an environment that Gymnasium itself registers (a click type)."""
    if ":" in text:
        raise click.BadParameter(f"{text!r} would import a module: expected an environment of Gymnasium itself.")
    from difflogic.policies.environments import threshold

    threshold(text)  # it refuses unknown names
    return text


def tasks(text: str) -> frozenset[str]:
    """Parse a comma-separated list of installed tasks in Python (a click type)."""
    from difflogic.config import registered

    return frozenset(registered.find(name.strip()).name for name in text.split(",")) if text else frozenset()


def network(text: str) -> str:
    """Parse an IP address or network (a click type)."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an IP address or network: expected, say, 10.0.0.0/8.") from None


def root_path(text: str) -> str:
    """Parse the prefix of all URL paths, and remove its trailing slashes (a click type)."""
    path = text.rstrip("/")
    # The prefix must differ from paths of the server.
    reserved = ("api", "static", "docs", "openapi.json", "metrics")
    if text and (not re.fullmatch(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+", path) or path.split("/")[1] in reserved):
        raise click.BadParameter(f"{text!r} is reserved, or not a path of letters, digits, ., - and _, such as /ca.")
    return path


retention_options = together(
    click.option(
        "--keep-days",
        type=click.FloatRange(min=0),
        metavar="DAYS",
        help="Delete jobs that ended at least DAYS days ago. Time in which no server runs does not count.",
    ),
    click.option(
        "--quota",
        type=megabytes,
        metavar="MB",
        help="Delete the oldest ended jobs until all jobs take at most MB megabytes, but keep those of the last day.",
    ),
)


@click.command("serve")
@click.argument("folder", type=PATH, default="difflogic-jobs")
@click.option(
    "--workers",
    default="auto",
    show_default=True,
    metavar="auto|none|cpu,gpu:0|ray",
    help="The devices that train. auto: each hardware GPU and the CPU. ray or ray:HOST:PORT: the devices of a Ray "
    "cluster, while this machine simplifies, proves, exports and evaluates. none: jobs stay queued.",
)
@click.option(
    "--token-file",
    type=PATH,
    metavar="FILE",
    help="A file with a line name:token per owner. With `name operator:token` an owner sees all jobs. The file is read "
    "again when it changes.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Listening address; a public one needs a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="The port; 0: a free one.")
@click.option("--log", "log_file", type=PATH, metavar="FILE", help="Append the log to FILE [standard error].")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Accept this host name. May be repeated.")
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    type=network,
    metavar="ADDRESS",
    help="A proxy whose X-Forwarded-For is trusted: an address or a network. May be repeated.",
)
@click.option("--root-path", type=root_path, default="", metavar="/PATH", help="The path prefix at a proxy.")
@click.option("--tls-cert", type=PATH, metavar="FILE", help="The certificate for HTTPS, in PEM.")
@click.option("--tls-key", type=PATH, metavar="FILE", help="The certificate's private key, in PEM.")
@click.option("--max-epochs", "epochs", type=click.IntRange(1), help="Maximum epochs per job [1000000].")
@click.option("--max-population", "population", type=click.IntRange(1), help="Maximum models per job [1024].")
@click.option("--max-hours", "hours", type=click.FloatRange(0, min_open=True), help="Maximum predicted job hours [48].")
@click.option("--max-memory", "memory", type=megabytes, metavar="MB", help="Maximum job memory [3/4 of the host's].")
@click.option("--max-upload", "upload", type=megabytes, metavar="MB", help="Maximum size of an uploaded file [8].")
@click.option("--owner-quota", type=megabytes, metavar="MB", help="Maximum disk space per owner.")
@click.option("--max-jobs", "jobs", type=click.IntRange(1), help="Maximum queued jobs per owner [10000].")
@retention_options
@click.option(
    "--environment",
    "environments",
    multiple=True,
    type=environment,
    metavar="NAME",
    help="An environment of Gymnasium in which jobs may train agents, besides those of the presets. May be repeated.",
)
@click.option(
    "--tasks",
    type=tasks,
    default="",
    metavar="PACKAGE:NAME,...",
    help="Installed tasks in Python that jobs may use. They are code that the server runs [none].",
)
@click.option(
    "--any-mount",
    is_flag=True,
    help="Allow a store on a network mount, where a second machine can corrupt the database, or on an overlay mount, "
    "which is deleted with its container.",
)
@click.option("--rebuild", is_flag=True, help="Rebuild the database from the folders of the jobs. The old one is kept.")
def serve(
    folder: Path, workers: str, token_file: Path | None, log_file: Path | None, rebuild: bool, **options: Any
) -> None:
    """Serve the jobs in FOLDER: accept them, train them one after another on each device, and show their progress.

    The command prints one link that signs you in. The first start creates a token in FOLDER/token, which your other
    commands on this machine find by themselves. You can set tokens in DIFFLOGIC_TOKEN or in a file; the printed address
    then has none. Without such tokens only this machine can connect. Ctrl-C saves the current jobs, and the next start
    continues them.

    Example: difflogic serve --port 9000 --log serve.log
    """
    with service("serve"):
        from difflogic.serve import log
        from difflogic.serve.api.app import create_app
        from difflogic.serve.api.server import Server, listen
        from difflogic.serve.cluster import ClusterSupervisor, connected
        from difflogic.serve.local import findable
        from difflogic.serve.store import mount
        from difflogic.serve.store.cleanup import housekeeping
        from difflogic.serve.store.store import Store
        from difflogic.serve.worker import devices as worker_devices
        from difflogic.serve.worker.supervisor import Supervisor

    # Misspelled devices and invalid certificates are rejected before the folder is created.
    settings = _settings(options)
    ray = connected(workers, "A worker on a Ray cluster")
    devices = worker_devices.parse(workers) if ray is None else [worker_devices.FOLLOW_UPS]
    os.umask(0o077)  # files created from here on, also by workers, are private
    if options["any_mount"]:
        os.environ[mount.ALLOW] = "1"  # for child processes too
    log.set_up()
    store = Store.open(folder, rebuild=rebuild)
    tokens, token_path = _tokens(folder, settings, token_file)
    # The socket is opened before any worker starts, so that there is nothing to clean up if the address is in use.
    socket = listen(settings.host, settings.port)
    port = socket.getsockname()[1]
    # Browsers do not send the part after the #, so no log of a server or proxy contains the token.
    link = f"{settings.address(port)}/" + ("" if token_path is None else f"#token={token_path.read_text().strip()}")
    app = create_app(store, tokens, settings)
    server, most = Server(app, lambda: echo(f"Serving {folder} at {link}")), options["memory"]
    cluster = nullcontext() if ray is None else ClusterSupervisor(ray, folder, max_memory=most)
    # These contexts end in reverse order: the housekeeper ends, workers save and return their jobs, the socket closes.
    with (
        socket,
        nullcontext() if log_file is None else log.redirected(log_file),
        findable(settings, port, token_path),
        Supervisor(folder, devices, max_memory=most),
        cluster,
        housekeeping(folder, options["keep_days"], options["quota"]),
    ):
        server.run(sockets=[socket])


def _settings(options: dict[str, Any]) -> ServeSettings:
    from difflogic.serve.api.server import check_tls
    from difflogic.serve.api.settings import Caps, ConnectionLimits, ServeSettings

    certificate, key = options["tls_cert"], options["tls_key"]
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key must be used together: give both.")
    if certificate is not None:
        check_tls(certificate, key)

    def given(kind: Any) -> dict[str, Any]:
        return {field.name: options[field.name] for field in fields(kind) if options.get(field.name) is not None}

    environments = ServeSettings.environments | set(options["environments"])
    own = {"caps": Caps(**given(Caps)), "connections": ConnectionLimits(**given(ConnectionLimits))}
    own |= {"tls": None if certificate is None else (certificate, key), "environments": environments}
    return ServeSettings(**given(ServeSettings) | own)


def _tokens(folder: Path, settings: ServeSettings, file: Path | None) -> tuple[Tokens, Path | None]:
    """Return the configured tokens and None, or a generated token for this machine only and the path of its file."""
    from difflogic.serve.api import tokens

    if file is not None:
        return tokens.Tokens.of_file(file), None
    if token := os.environ.get("DIFFLOGIC_TOKEN"):
        return tokens.Tokens.single(token), None
    if not settings.is_local:
        raise UsageError(
            f"Other machines can reach {settings.host}: set DIFFLOGIC_TOKEN to a secret, or give --token-file."
        )
    path = tokens.generated_token(folder)
    return tokens.Tokens.of_file(path), path


@click.command("gc")
@click.argument("folder", type=PATH)
@retention_options
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@json_option
def gc(folder: Path, keep_days: float | None, quota: int | None, dry_run: bool, as_json: bool) -> None:
    """Delete old jobs from the store in FOLDER, with all their files.

    Queued, running and paused jobs are kept, and so are files that a post-processing job still needs. The server may
    be running.

    Example: difflogic gc difflogic-jobs --keep-days 30 --quota 20000
    """
    from difflogic.serve.store.cleanup import collect
    from difflogic.serve.store.store import Store

    if keep_days is None and quota is None:
        raise UsageError("Nothing to delete: give --keep-days DAYS, --quota MB, or both.")
    cleanup = collect(Store.existing(folder), keep_days, quota, dry_run)
    if as_json:
        echo(json.dumps({**asdict(cleanup), "dry_run": dry_run}))
        return
    for job in cleanup.removed:
        echo(f"{job.name}  {job.bytes / 1e6:.1f} MB  {job.why}")
    verb = "would be deleted" if dry_run else "deleted"
    freed = sum(job.bytes for job in cleanup.removed)
    removed = counted(len(cleanup.removed), "job")
    echo(f"{removed} {verb}, {freed / 1e6:.1f} MB; {cleanup.bytes_left / 1e6:.1f} MB remain.")
    if keep_days is not None and cleanup.served_days < keep_days:
        echo(f"Only the time in which `difflogic serve` runs counts, in days so far: {cleanup.served_days:g}.")


@click.command("backup")
@click.argument("folder", type=PATH)
@click.argument("file", type=PATH, callback=output)
@force_option
def backup(folder: Path, file: Output) -> None:
    """Copy the store in FOLDER, with jobs, checkpoints, metrics and results, to a tar FILE, compressed if it is .gz.

    Jobs can be submitted and trained meanwhile. `tar -xf FILE -C NEW` unpacks a folder that can be served. Jobs that
    were running continue from their checkpoints. Tokens are not in the backup.

    Example: difflogic backup difflogic-jobs monday.tar.gz
    """
    from difflogic.serve.store.backup import back_up
    from difflogic.serve.store.store import Store

    jobs = back_up(Store.existing(folder), file)
    size = f"{file.path.stat().st_size / 1e6:.1f} MB" if file.path.is_file() else "written"
    echo(f"{counted(jobs, 'job')}, {size}: {file}")
