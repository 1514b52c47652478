"""`difflogic doctor`: is everything there, and do the adapters compute what they should?"""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING

import click

import difflogic
from difflogic.cli.commands import devices
from difflogic.cli.options import json_document_option
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.devices.selftest import Check
    from difflogic.gpu.adapter import Adapter

FAILED = 1


@click.command("doctor")
@click.option("--adapter", metavar="INDEX|NAME", help="Test only this adapter (default: every one).")
@click.option("--report", is_flag=True, help="Print a text for a bug report. It contains nothing private.")
@json_document_option
def command(adapter: str | None, report: bool, as_json: bool) -> int:
    """Check the installation, and test each GPU adapter against the reference.

    The test runs in a child process, because a broken driver can crash it. Its result is saved, and training uses
    no adapter that failed. The exit code is 1 if something that training needs does not work.

    Example: difflogic doctor
    """
    from difflogic.devices import selftest
    from difflogic.gpu.adapter import NO_ADAPTER, list_adapters, select_adapter

    if report and as_json:
        raise UsageError("--report is a text to paste, --json a document: give one of them.")
    versions = {"difflogic": difflogic.__version__, "python": platform.python_version()}
    # Asked of the installation and not of the modules, which a broken one may fail to import.
    versions |= {name: metadata.version(name) for name in ("numpy", "wgpu")}
    # The report passes every line through a filter that takes names and folders out of it.
    say = (lambda text: None) if as_json else _reporting() if report else click.echo
    if not report:
        say(", ".join(f"{name} {version}" for name, version in versions.items()))
    adapters = [select_adapter(adapter)] if adapter is not None else list_adapters()
    results = []
    for tested in adapters:
        summary = f"{tested.index}: {tested.name} ({tested.backend}, {tested.driver})"
        say("\n" + ("\n".join(devices.lines(tested)) if report else summary))
        # By its index and not by its name, which two equal cards share.
        checks = selftest.self_test(str(tested.index))
        selftest.keep(tested, checks)
        results.append((tested, checks))
        say("\n".join(_line(check) for check in checks))
    # No adapter at all is not healthy either: the GPU engine cannot be used.
    healthy = bool(results) and all(check.passed for _, checks in results for check in checks)
    if as_json:
        click.echo(json.dumps(_report(versions, results, healthy), indent=2))
    else:
        say("\n" + (_verdict(healthy) if adapters else NO_ADAPTER))
    return 0 if healthy else FAILED


def _reporting() -> Callable[[str], None]:
    """The report's beginning, and what prints the rest without anything private."""
    from difflogic.cli.commands import bug_report

    private = bug_report.private()
    for line in bug_report.lines():
        click.echo(private(line))
    return lambda text: click.echo(private(text))


def _line(check: Check) -> str:
    mark = "ok  " if check.passed else "FAIL"
    return f"   {mark}  {check.name}: {check.detail}"


def _verdict(healthy: bool) -> str:
    if healthy:
        return "All tests passed: the GPU engine can be used."
    return (
        "Some tests failed: use another adapter (--engine gpu:INDEX) or --engine cpu until the problems above are "
        "fixed."
    )


def _report(versions: dict[str, str], results: list[tuple[Adapter, list[Check]]], healthy: bool) -> dict[str, object]:
    return {
        "healthy": healthy,
        "versions": versions,
        "adapters": [
            devices.describe(adapter) | {"checks": [dataclasses.asdict(check) for check in checks]}
            for adapter, checks in results
        ],
    }
