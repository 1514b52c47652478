"""Small questions to a device that decide whether its answers can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.gpu.device import Device
from difflogic.gpu.shaders import load_source

Words = npt.NDArray[np.uint32]

LOOP_TRIPS = 40_000


def run_probe(device: Device, name: str, words: Words) -> Words:
    """Dispatch `shaders/selftest/<name>.wgsl` once over a buffer of words and return the buffer."""
    pipeline = device.handle.create_compute_pipeline(
        label=name,
        layout="auto",
        compute={"module": device.compile(load_source(f"selftest/{name}")), "entry_point": "main"},
    )
    buffer = device.buffer(name, words.nbytes)
    device.upload(buffer, words, "selftest")
    resource: dict[str, Any] = {"binding": 0, "resource": {"buffer": buffer}}
    group = device.handle.create_bind_group(label=name, layout=pipeline.get_bind_group_layout(0), entries=[resource])
    encoder = device.handle.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    compute_pass.dispatch_workgroups(1)
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    answer = device.download(buffer, np.uint32, "selftest")
    buffer.destroy()
    return answer


def runs_long_loops(device: Device) -> bool:
    """Whether two loops of 40,000 trips in one invocation are carried out in full."""
    words = run_probe(device, "loop_budget", np.array([0, LOOP_TRIPS, 0], dtype=np.uint32))
    return int(words[0]) == LOOP_TRIPS


def sees_not_finite(device: Device) -> bool:
    """Whether NaNs and infinities are told from finite numbers, the largest and the smallest included."""
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -1.0, 3.4028235e38, 1.1754944e-38], dtype=np.float32)
    return bool((run_probe(device, "not_finite", values.view(np.uint32)) == np.isfinite(values)).all())


def keeps_workgroup_memory(device: Device) -> bool:
    """Whether all 16 KiB of workgroup memory come back as written, across invocations."""
    return not run_probe(device, "workgroup_memory", np.zeros(64, dtype=np.uint32)).any()
