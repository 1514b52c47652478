"""`difflogic doctor`: check the installation, test the devices, and plan the memory of training."""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import bug_report
from difflogic.cli.options import json_document_option, megabytes
from difflogic.cli.screen import table
from difflogic.cli.screen.echo import FAILED, echo
from difflogic.cli.work import is_asked, work, work_options
from difflogic.errors import UsageError
from difflogic.version import __version__

if TYPE_CHECKING:
    from difflogic.devices.device import Device
    from difflogic.devices.selftest import Check

SHOWN_LIMITS = (
    *("max-compute-invocations-per-workgroup", "max-storage-buffers-per-shader-stage"),
    *("max-compute-workgroup-storage-size", "max-storage-buffer-binding-size", "max-buffer-size"),
)
"""Names of the printed adapter limits, which bound the size of a grid or a population."""
SHOWN_FEATURES = ("timestamp-query", "shader-f16")
PASSED = "All tests passed: the GPU engine can be used."
NOT_PASSED = "Some tests failed: use another adapter (--engine gpu:INDEX) or --engine cpu until they pass."


@click.command("doctor")
@work_options
@click.option("--adapter", metavar="INDEX|NAME", help="Check only this adapter [all; for memory the first].")
@click.option("--list", "only_list", is_flag=True, help="List the devices without testing them.")
@click.option("--population", type=int, metavar="M", help="With PRESET or RUN: models trained at once [1].")
@click.option("--max-memory", type=megabytes, metavar="MB", help="With PRESET or RUN: the maximum device memory.")
@click.option("--report", is_flag=True, help="Print the text of a bug report, without private data.")
@json_document_option
def command(
    adapter: str | None, only_list: bool, population: int | None, max_memory: int | None, report: bool, as_json: bool,
    **options: Any,
) -> int:  # fmt: skip
    """Check the installation, list the devices for --engine, and test each GPU adapter against the reference.

    The test runs in a child process, because a broken driver can crash it. Its result is saved, and training uses
    no adapter that failed. The exit code is 1 if something that training needs does not work.

    With PRESET or RUN, the command instead prints the device memory that its training needs, for each strategy, and
    the strategy that is chosen. With `kept`, the forward pass stores every gate's value for the backward pass. With
    `recomputed`, it stores only every state, or every 2nd, 3rd, ... state, and the backward pass repeats the steps with
    the same results. A population too large for one binding is trained in groups, one after another.

    Example: difflogic doctor
    """
    if is_asked(options) or population is not None or max_memory is not None:
        if only_list or report:
            raise UsageError("--list and --report cannot be used with PRESET, RUN or their options: omit these.")
        _show_memory(adapter, options, population, max_memory, as_json)
        return 0
    if report and (as_json or only_list):
        raise UsageError("--report cannot be used with --json or --list: give one of them.")
    # For a report, a filter removes names and folders from every line.
    private = bug_report.private() if report else str
    return _examine(adapter, only_list, report, None if as_json else lambda text: echo(private(text)))


def _examine(adapter: str | None, only_list: bool, report: bool, write: Callable[[str], None] | None) -> int:
    """List the devices, test the adapters and return the exit code; `write` prints text, or is None for JSON."""
    from difflogic.devices import selftest
    from difflogic.devices.device import Device
    from difflogic.gpu.adapter import NO_ADAPTER

    versions = {"difflogic": __version__, "python": platform.python_version()}
    # Versions come from the metadata, since the modules may fail to import.
    versions |= {name: metadata.version(name) for name in ("numpy", "wgpu")}
    show = write or (lambda text: None)
    show("\n".join(bug_report.lines()) if report else ", ".join(map(" ".join, versions.items())))
    results = []
    for device in Device.all() if adapter is None else [Device(f"gpu:{adapter}")]:
        show("\n" + "\n".join(_lines(device)))
        checks: list[Check] = []
        if device.adapter is not None and not only_list:
            # The adapter is selected by index, since two equal cards have the same name.
            checks += selftest.self_test(str(device.adapter.index))
            selftest.keep(device.adapter, checks)
        results.append((device, checks))
        for check in checks:
            show(f"   {'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.detail}")
    # If no adapter was tested, the GPU engine cannot be used.
    healthy = any(checks for _, checks in results) and all(check.passed for _, checks in results for check in checks)
    if write is None:
        document = {"versions": versions, "devices": [_described(*result) for result in results]}
        echo(json.dumps(document if only_list else {"healthy": healthy} | document, indent=2))
    elif not any(device.adapter for device, _ in results):
        write(f"\n{NO_ADAPTER}")
    elif not only_list:
        write(f"\n{PASSED if healthy else NOT_PASSED}")
    return 0 if healthy or only_list else FAILED


def _lines(device: Device) -> list[str]:
    lines, adapter = [f"{device}: {device.name}"], device.adapter
    if adapter is None:
        return [*lines, f"   kind      processor, {'NumPy' if str(device) == 'reference' else 'compiled for it'}"]
    features = [name for name in SHOWN_FEATURES if name in adapter.features]
    return [
        *lines,
        f"   kind      {adapter.type} ({'software, on the CPU' if adapter.software else 'hardware'})",
        f"   backend   {adapter.backend}",
        f"   driver    {adapter.driver or 'not named'}",
        *(f"   limit     {name} = {adapter.limits[name]}" for name in SHOWN_LIMITS),
        f"   features  {', '.join(features) or 'none'}",
    ]


def _described(device: Device, checks: list[Check]) -> dict[str, Any]:
    plain: dict[str, Any] = {"device": str(device), "name": device.name, "kind": device.kind}
    if device.adapter is not None:
        # JSON cannot represent the handle, which is an object of wgpu.
        names = [field.name for field in dataclasses.fields(device.adapter) if field.name != "handle"]
        plain |= {name: getattr(device.adapter, name) for name in names}
    return plain | ({"checks": [dataclasses.asdict(check) for check in checks]} if checks else {})


def _show_memory(
    adapter: str | None, options: dict[str, Any], population: int | None, max_memory: int | None, as_json: bool
) -> None:
    from difflogic.bench.plans import memory_plans

    config = work(options).config
    rows = memory_plans(adapter, config, 1 if population is None else population, max_memory)
    if as_json:
        echo(json.dumps(rows, indent=2))
        return
    groups = rows[0]["groups"]
    title = f"{config.name}, " if groups == 1 else f"{config.name}, for each of {groups} groups, "
    table.show(("strategy", "", "MB", "of that"), list(map(_memory_row, rows)), f"{title}device memory:", texts=True)


def _memory_row(row: dict[str, Any]) -> tuple[str, ...]:
    largest = sorted(row["buffers"].items(), key=lambda item: -item[1])[:4]
    apart = f"/{row['states_apart']}" if row["states_apart"] > 1 else ""
    parts = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in largest)
    return row["strategy"] + apart, "chosen" if row["chosen"] else "", f"{row['total_bytes'] / 1e6:.1f}", parts
