"""Options of `difflogic serve` and of other commands on a store."""

from __future__ import annotations

import ipaddress
import os
import re

import click

from difflogic.cli.options import PATH, megabytes, together


def environment(text: str) -> str:
    """Check a name that gymnasium itself has registered: a type for click."""
    if ":" in text:
        raise click.BadParameter(
            f"{text!r} would import a module: expected the name of an environment of gymnasium's own."
        )
    from difflogic.policies.environments import threshold

    threshold(text)  # it refuses unknown names
    return text


environment_option = click.option(
    "--environment",
    "environments",
    multiple=True,
    type=environment,
    metavar="NAME",
    help="An environment of Gymnasium in which jobs may train agents, beside those of the presets. May be repeated.",
)


def tasks(text: str) -> frozenset[str]:
    """Check names of installed tasks in Python: a type for click."""
    from difflogic.config import registered

    return frozenset(registered.find(name.strip()).name for name in text.split(",")) if text else frozenset()


tasks_option = click.option(
    "--tasks",
    type=tasks,
    default="",
    metavar="PACKAGE:NAME,...",
    help="Installed tasks in Python that jobs may use. They are code that the server runs [none].",
)
retention_options = together(
    click.option(
        "--keep-days",
        type=click.FloatRange(min=0),
        metavar="DAYS",
        help="Delete jobs that ended more than this many days ago. Only days on which the store is served count.",
    ),
    click.option(
        "--quota",
        type=megabytes,
        metavar="MB",
        help="Delete the oldest ended jobs until all jobs take at most this much, but none of the last day.",
    ),
)


def _allow(_context: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    from difflogic.serve.store.mount import ALLOW

    if is_wanted:
        os.environ[ALLOW] = "1"  # for child processes too


any_mount_option = click.option(
    "--any-mount",
    is_flag=True,
    callback=_allow,
    expose_value=False,
    help="Allow a store on a network mount, where a second machine destroys the database, or on an overlay mount, "
    "which is deleted with its container.",
)


def network(text: str) -> str:
    """Parse an IP address or network: a type for click."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an IP address or a network, say 127.0.0.1 or 10.0.0.0/8.") from None


def root_path(text: str) -> str:
    """Check a path before all others, without a slash at its end: a type for click."""
    path = text.rstrip("/")
    # It must differ from the server's own paths.
    own = ("api", "static", "docs", "openapi.json", "metrics")
    if text and (not re.fullmatch(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+", path) or path.split("/")[1] in own):
        raise click.BadParameter(
            f"{text!r} is not a path of letters, digits, dots, - and _ that is free, say /difflogic."
        )
    return path


door_options = together(
    click.option(
        "--host",
        default="127.0.0.1",
        show_default=True,
        help="The address to listen on. One that other machines reach needs a token.",
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8765,
        show_default=True,
        help="The port to listen on. 0: any free port.",
    ),
    click.option(
        "--allow-host",
        "names",
        multiple=True,
        metavar="NAME",
        help="A host name that a proxy's clients use, for example lab.org. May be repeated.",
    ),
    click.option(
        "--trusted-proxy",
        "proxies",
        multiple=True,
        type=network,
        metavar="ADDRESS",
        help="A proxy whose X-Forwarded-For is trusted: an address or a network. May be repeated.",
    ),
    click.option("--root-path", type=root_path, default="", metavar="/PATH", help="The path prefix that a proxy adds."),
    click.option("--tls-cert", type=PATH, metavar="FILE", help="The certificate for HTTPS, in PEM."),
    click.option("--tls-key", type=PATH, metavar="FILE", help="The certificate's private key, in PEM."),
)
"""Access to the server; options have the names of the settings that they are."""
cap_options = together(
    click.option("--max-epochs", "epochs", type=click.IntRange(1), help="The most epochs of a job [1000000]."),
    click.option("--max-population", "population", type=click.IntRange(1), help="The most models of a job [1024]."),
    click.option(
        "--max-hours",
        "hours",
        type=click.FloatRange(0, min_open=True),
        help="The most hours that a job may take, as predicted [48].",
    ),
    click.option(
        "--max-memory",
        "memory",
        type=megabytes,
        metavar="MB",
        help="The most memory of a job [three quarters of the machine's].",
    ),
    click.option("--max-upload", "upload", type=megabytes, metavar="MB", help="The largest file of a picture [8]."),
    click.option(
        "--owner-quota",
        type=megabytes,
        metavar="MB",
        help="The most disk space of an owner's jobs. Above it new jobs are refused.",
    ),
    click.option("--max-jobs", "jobs", type=click.IntRange(1), help="The most queued jobs of an owner [10000]."),
)
