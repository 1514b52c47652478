"""`difflogic devices`: where training could run."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import json_document_option

if TYPE_CHECKING:
    from difflogic.devices.device import Device
    from difflogic.gpu.adapter import Adapter

SHOWN_LIMITS = (
    "max-compute-invocations-per-workgroup",
    "max-storage-buffers-per-shader-stage",
    "max-compute-workgroup-storage-size",
    "max-storage-buffer-binding-size",
    "max-buffer-size",
)

PROCESSOR = {"cpu": "processor, compiled for it", "reference": "processor, NumPy"}


@click.command("devices")
@click.option("--all", "show_all", is_flag=True, help="Every limit and feature, not only those that matter here.")
@json_document_option
def command(show_all: bool, as_json: bool) -> None:
    """List what --engine can name: the GPU adapters, hardware first, with type, driver and limits, and the processor.

    Part of an adapter's name selects it too: --engine gpu:NAME.

    Example: difflogic devices
    """
    from difflogic.devices.device import Device
    from difflogic.gpu.adapter import NO_ADAPTER

    devices = Device.all()
    if as_json:
        click.echo(json.dumps([_described(device) for device in devices], indent=2))
        return
    if all(device.adapter is None for device in devices):
        click.echo(NO_ADAPTER)
    for device in devices:
        if device.adapter is None:
            click.echo(f"{device}: {device.name}\n   kind      {PROCESSOR[str(device)]}")
        else:
            click.echo("\n".join(lines(device.adapter, show_all)))


def _described(device: Device) -> dict[str, Any]:
    if device.adapter is None:
        return {"device": str(device), "name": device.name, "kind": device.kind}
    return {"device": str(device)} | describe(device.adapter)


def describe(adapter: Adapter) -> dict[str, Any]:
    """An adapter as plain data, `kind` being `hardware` or `software`."""
    # The handle is wgpu's own object.
    fields = [field.name for field in dataclasses.fields(adapter) if field.name != "handle"]
    return {name: getattr(adapter, name) for name in fields} | {"kind": "software" if adapter.software else "hardware"}


def lines(adapter: Adapter, show_all: bool = False) -> list[str]:
    """Return what there is to know of an adapter, or what matters here."""
    kind = "software, on the CPU" if adapter.software else "hardware"
    lines = [
        f"gpu:{adapter.index}: {adapter.name}",
        f"   kind      {adapter.type} ({kind})",
        f"   backend   {adapter.backend}",
        f"   driver    {adapter.driver or 'not named'}",
    ]
    # Of all limits, these decide how large a grid or population may be.
    limits = sorted(adapter.limits) if show_all else SHOWN_LIMITS
    lines += [f"   limit     {name} = {adapter.limits[name]}" for name in limits]
    features = adapter.features if show_all else [f for f in adapter.features if f in ("timestamp-query", "shader-f16")]
    return [*lines, f"   features  {', '.join(features) or 'none'}"]
