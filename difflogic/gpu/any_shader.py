"""Run one compute shader that is no kernel of ours, such as an exported circuit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.gpu.device import Device
from difflogic.gpu.shaders import Source

Array = npt.NDArray[Any]


class AnyShader:
    """A shader whose bindings of group 0 are, in order, a uniform and then storage buffers."""

    def __init__(self, device: Device, source: Source, arrays: Sequence[Array]) -> None:
        """`arrays` fill the buffers. Raises KernelError where the shader does not compile."""
        self._device = device
        self._pipeline = device.handle.create_compute_pipeline(
            label=source.name, layout="auto", compute={"module": device.compile(source), "entry_point": "main"}
        )
        self.buffers = [
            device.buffer(f"{source.name} {index}", array.nbytes, uniform=index == 0)
            for index, array in enumerate(arrays)
        ]
        for buffer, array in zip(self.buffers, arrays, strict=True):
            device.upload(buffer, array, "shader")

    def run(self, order: Sequence[int], workgroups: tuple[int, int]) -> None:
        """One dispatch, with the buffers in this order."""
        handle = self._device.handle
        buffers = [self.buffers[index] for index in order]
        entries = [{"binding": binding, "resource": {"buffer": buffer}} for binding, buffer in enumerate(buffers)]
        group = handle.create_bind_group(layout=self._pipeline.get_bind_group_layout(0), entries=entries)
        encoder = handle.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(self._pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(*workgroups)
        compute.end()
        self._device.queue.submit([encoder.finish()])

    def read(self, index: int) -> npt.NDArray[np.uint32]:
        """A copy of a buffer as words."""
        return self._device.download(self.buffers[index], np.uint32, "shader")
