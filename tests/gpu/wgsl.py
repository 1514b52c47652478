"""Shaders of the tests' own, bound in the order of their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from difflogic.gpu.device import Device


class Program:
    """One compute shader with storage buffers 0, 1, ... of the given arrays' sizes, kept between runs."""

    def __init__(self, device: Device, text: str, *arrays: np.ndarray) -> None:
        self.device = device
        module = device.handle.create_shader_module(label="test", code=text)
        self.pipeline = device.handle.create_compute_pipeline(
            label="test", layout="auto", compute={"module": module, "entry_point": "main"}
        )
        self.buffers = [device.buffer("test", array.nbytes) for array in arrays]
        for buffer, array in zip(self.buffers, arrays, strict=True):
            device.queue.write_buffer(buffer, 0, np.ascontiguousarray(array))
        entries = [
            {"binding": number, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
            for number, buffer in enumerate(self.buffers)
        ]
        self.group = device.handle.create_bind_group(layout=self.pipeline.get_bind_group_layout(0), entries=entries)

    def run(self, workgroups: int) -> None:
        encoder: Any = self.device.handle.create_command_encoder()
        compute_pass = encoder.begin_compute_pass()
        compute_pass.set_pipeline(self.pipeline)
        compute_pass.set_bind_group(0, self.group)
        compute_pass.dispatch_workgroups(workgroups)
        compute_pass.end()
        self.device.queue.submit([encoder.finish()])

    def read(self, number: int) -> np.ndarray:
        """The words of a buffer."""
        return np.frombuffer(self.device.queue.read_buffer(self.buffers[number]), dtype=np.uint32)
