"""`difflogic serve`: a queue for the devices of this machine, and a page to watch it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from difflogic.cli.options import megabytes, service
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.serve.settings import ServeSettings
    from difflogic.serve.tokens import Tokens


@click.command("serve")
@click.argument("folder", type=click.Path(path_type=Path), default="difflogic-jobs")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; beyond this machine with a token."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any that is free.")
@click.option(
    "--workers",
    default="auto",
    show_default=True,
    metavar="auto|none|cpu,gpu:0",
    help="The devices that train. auto: each hardware GPU and the processor.",
)
@click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="Lines name:token, one an owner.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name that a proxy's clients ask for, as lab.org.")
@click.option("--max-epochs", type=click.IntRange(1), help="That one job may ask for [1000000].")
@click.option("--max-population", type=click.IntRange(1), help="Models that one job may train [1024].")
@click.option("--max-hours", type=click.FloatRange(0, min_open=True), help="That one job may take, as predicted [48].")
@click.option(
    "--max-memory", type=megabytes, metavar="MB", help="That one job may take [three quarters of the machine's]."
)
@click.option("--max-upload", type=megabytes, metavar="MB", help="Of a picture's file [8].")
@click.option("--keep-days", type=click.FloatRange(min=0), metavar="DAYS", help="Delete jobs that ended longer ago.")
@click.option("--quota", type=megabytes, metavar="MB", help="Delete the oldest that ended until all jobs take so much.")
def command(
    folder: Path,
    host: str,
    port: int,
    workers: str,
    token_file: Path | None,
    allow_host: tuple[str, ...],
    max_epochs: int | None,
    max_population: int | None,
    max_hours: float | None,
    max_memory: int | None,
    max_upload: int | None,
    keep_days: float | None,
    quota: int | None,
) -> None:
    """Serve the jobs in FOLDER: take them, train them one after another on each device, and show how they do.

    The address is printed, and, the first time, a token to sign in with; it stays in FOLDER/token. Tokens of your own
    come in DIFFLOGIC_TOKEN or in a file; without one of these nobody but this machine is let in. Ctrl-C saves what is
    under way, and the next start goes on with it.

    Example: difflogic serve --port 9000
    """
    with service("serve"):
        from difflogic.serve import devices as known
        from difflogic.serve import logs
        from difflogic.serve.app import create_app
        from difflogic.serve.housekeeper import Housekeeper
        from difflogic.serve.server import Server, listen
        from difflogic.serve.settings import Caps, ServeSettings
        from difflogic.serve.store import Store
        from difflogic.serve.supervisor import Supervisor

    given = {"epochs": max_epochs, "population": max_population, "hours": max_hours, "memory": max_memory,
             "upload": max_upload}  # fmt: skip
    caps = Caps(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    settings = ServeSettings(host, port, caps, allow_host)
    devices = known.parse(workers)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # a store that is made here is nobody else's to read
    store = Store.open(folder)
    tokens = _tokens(folder, settings, token_file)
    socket = listen(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{socket.getsockname()[1]}"
    logs.set_up()
    server = Server(create_app(store, tokens, settings), lambda: click.echo(f"Serving {folder} at {address}"))
    with socket, Supervisor(folder, devices, max_memory=max_memory), Housekeeper(folder, keep_days, quota):
        server.run(sockets=[socket])


def _tokens(folder: Path, settings: ServeSettings, file: Path | None) -> Tokens:
    """Those of the operator, else, for this machine alone, one of our own."""
    import os

    from difflogic.serve import tokens

    if file is not None:
        return tokens.read(file)
    if given := os.environ.get("DIFFLOGIC_TOKEN"):
        return tokens.Tokens({tokens.OPERATOR: given})
    if not settings.is_local:
        raise UsageError(
            f"{settings.host} is reached by other machines: set a token of your own in DIFFLOGIC_TOKEN, or give "
            "--token-file."
        )
    token, is_new = tokens.generated(folder)
    if is_new and sys.stdout.isatty():
        click.echo(f"Token: {token}")
    click.echo(f"The token to sign in with is in {folder / tokens.GENERATED}")
    return tokens.Tokens({tokens.OPERATOR: token})
