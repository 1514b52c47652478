"""`difflogic doctor`: is everything there, and do the adapters compute what they should?"""

from __future__ import annotations

import dataclasses
import json
import platform
from importlib import metadata
from typing import TYPE_CHECKING

import click

import difflogic
from difflogic.cli.options import json_document_option

if TYPE_CHECKING:
    from difflogic.gpu.adapter import Adapter
    from difflogic.train.selftest import Check

FAILED = 1


@click.command("doctor")
@click.option("--adapter", metavar="INDEX|NAME", help="Test only this adapter (default: every one).")
@json_document_option
def command(adapter: str | None, as_json: bool) -> int:
    """Check the installation, and test each GPU adapter against the reference.

    The test runs in a child process, since a broken driver can end it. Its verdict is kept: training uses
    no adapter that failed. Exit code 1 where something that training needs does not work.

    Example: difflogic doctor
    """
    from difflogic.gpu.adapter import NO_ADAPTER, list_adapters, select_adapter
    from difflogic.train import trust
    from difflogic.train.selftest import self_test

    versions = {"difflogic": difflogic.__version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in ("numpy", "wgpu")}
    if not as_json:
        click.echo(", ".join(f"{name} {version}" for name, version in versions.items()))
    adapters = [select_adapter(adapter)] if adapter is not None else list_adapters()
    results = []
    for tested in adapters:
        if not as_json:
            click.echo(f"\n{tested.index}: {tested.name} ({tested.backend}, {tested.driver})")
        checks = self_test(str(tested.index))
        trust.keep(tested, checks)
        results.append((tested, checks))
        if not as_json:
            click.echo("\n".join(_line(check) for check in checks))
    healthy = bool(results) and all(check.passed or not check.fatal for _, checks in results for check in checks)
    if as_json:
        click.echo(json.dumps(_report(versions, results, healthy), indent=2))
    else:
        click.echo("\n" + (_verdict(healthy) if adapters else NO_ADAPTER))
    return 0 if healthy else FAILED


def _line(check: Check) -> str:
    mark = "ok  " if check.passed else "FAIL" if check.fatal else "note"
    return f"   {mark}  {check.name}: {check.detail}"


def _verdict(healthy: bool) -> str:
    if healthy:
        return "All well: the GPU engine can be used."
    return "Not well: use another adapter (--engine gpu:INDEX) or --engine reference until the lines above are mended."


def _report(versions: dict[str, str], results: list[tuple[Adapter, list[Check]]], healthy: bool) -> dict[str, object]:
    from difflogic.cli.devices import describe

    return {
        "healthy": healthy,
        "versions": versions,
        "adapters": [
            describe(adapter) | {"checks": [dataclasses.asdict(check) for check in checks]}
            for adapter, checks in results
        ],
    }
