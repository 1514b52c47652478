"""`difflogic devices`: the adapters that training could run on."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import json_document_option

if TYPE_CHECKING:
    from difflogic.gpu.adapter import Adapter

SHOWN_LIMITS = (
    "max-compute-invocations-per-workgroup",
    "max-storage-buffers-per-shader-stage",
    "max-compute-workgroup-storage-size",
    "max-storage-buffer-binding-size",
    "max-buffer-size",
)


@click.command("devices")
@click.option("--all", "show_all", is_flag=True, help="Every limit and feature, not only those that matter here.")
@json_document_option
def command(show_all: bool, as_json: bool) -> None:
    """List the GPU adapters, hardware first: type, backend, driver, limits, features.

    An index or part of a name selects one: --engine gpu:0, --engine gpu:NAME.

    Example: difflogic devices
    """
    from difflogic.gpu.adapter import NO_ADAPTER, list_adapters

    adapters = list_adapters()
    if as_json:
        click.echo(json.dumps([describe(adapter) for adapter in adapters], indent=2))
        return
    if not adapters:
        click.echo(NO_ADAPTER)
    for adapter in adapters:
        click.echo("\n".join(lines(adapter, show_all)))


def describe(adapter: Adapter) -> dict[str, Any]:
    """An adapter as plain data, `kind` being `hardware` or `software`."""
    # The handle is wgpu's own object.
    fields = [field.name for field in dataclasses.fields(adapter) if field.name != "handle"]
    return {name: getattr(adapter, name) for name in fields} | {"kind": "software" if adapter.software else "hardware"}


def lines(adapter: Adapter, show_all: bool = False) -> list[str]:
    """What there is to know of an adapter, or what matters here."""
    kind = "software, on the CPU" if adapter.software else "hardware"
    lines = [
        f"{adapter.index}: {adapter.name}",
        f"   kind      {adapter.type} ({kind})",
        f"   backend   {adapter.backend}",
        f"   driver    {adapter.driver or 'not named'}",
    ]
    # Of all limits, these decide how large a grid or population may be.
    limits = sorted(adapter.limits) if show_all else SHOWN_LIMITS
    lines += [f"   limit     {name} = {adapter.limits[name]}" for name in limits]
    features = adapter.features if show_all else [f for f in adapter.features if f in ("timestamp-query", "shader-f16")]
    return [*lines, f"   features  {', '.join(features) or 'none'}"]
