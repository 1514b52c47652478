"""Dispatches and their commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from difflogic.gpu.device import Device


class Dispatch(NamedTuple):
    """One line of a compute pass."""

    kernel: str
    pipeline: Any
    bind_group: Any
    x: int
    y: int
    work: int = 0
    """Gate evaluations, roughly; 0 for what is short beside the fused steps."""


def encode(device: Device, dispatches: Sequence[Dispatch]) -> Any:
    """A command encoder with all dispatches in one pass."""
    encoder = device.handle.create_command_encoder()
    encode_pass(encoder, dispatches)
    return encoder


def encode_pass(encoder: Any, dispatches: Sequence[Dispatch], timestamps: dict[str, Any] | None = None) -> None:
    """One pass, its pipelines set where they change."""
    compute_pass = encoder.begin_compute_pass(timestamp_writes=timestamps)
    current = None
    for dispatch in dispatches:
        if dispatch.pipeline is not current:
            compute_pass.set_pipeline(dispatch.pipeline)
            current = dispatch.pipeline
        compute_pass.set_bind_group(0, dispatch.bind_group)
        compute_pass.dispatch_workgroups(dispatch.x, dispatch.y)
    compute_pass.end()
