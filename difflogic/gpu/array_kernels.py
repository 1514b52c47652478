"""Table of the ten kernels of `difflogic.tensor`, and the strides with which they access arrays of any shape."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflogic.gpu.shaders import Source, load_source

Shape = tuple[int, ...]
MOST_AXES = 8
"""Maximum number of axes of a tensor, including broadcast axes."""


@dataclass(frozen=True)
class ArrayKernel:
    """Array kernel in `shaders/tensor/<name>.wgsl`, which declares its bindings and `override` constants."""

    name: str
    struct: str = "Shape"
    """Name of the WGSL struct of the uniform."""
    ops: tuple[str, ...] = ()
    """Names of the operations; the `override` constant `OP` is an index into this tuple."""

    @property
    def source(self) -> Source:
        return load_source(f"tensor/{self.name}")


_UNARY = ("negate", "exp", "log", "sqrt", "tanh", "sigmoid", "relu")
_BINARY = ("add", "subtract", "multiply", "divide", "power", "first")
_D_BINARY = ("multiply a", "multiply b", "divide a", "divide b", "power a", "power b")

KERNELS = {
    kernel.name: kernel
    for kernel in (
        ArrayKernel("unary", ops=_UNARY),
        ArrayKernel("d_unary", ops=_UNARY[1:]),
        ArrayKernel("binary", "Strided", _BINARY),
        ArrayKernel("d_binary", "Strided", _D_BINARY),
        ArrayKernel("matmul"),
        ArrayKernel("gather"),
        ArrayKernel("reduce", ops=("sum", "squares")),
        ArrayKernel("softmax", "Rows"),
        ArrayKernel("d_softmax", "Rows"),
        ArrayKernel("adam", "Hyper"),
    )
}


def strides_of(shape: Shape, wanted: Shape) -> Shape:
    """Return the strides in entries of an array of `shape` broadcast to `wanted`; broadcast axes have stride 0."""
    strides, stride = [0] * len(wanted), 1
    for axis in range(1, len(shape) + 1):
        size = shape[-axis]
        strides[-axis] = stride if size > 1 else 0
        stride *= size
    return tuple(strides)


@dataclass(frozen=True)
class Walk:
    """Access pattern of a kernel's two operands, as fields of the uniform `Strided` and as `override` constants."""

    fields: dict[str, Any]
    fours: bool
    repeat_a: bool
    repeat_b: bool


@functools.lru_cache(maxsize=1024)
def walk(sizes: Shape, a_strides: Shape, b_strides: Shape) -> Walk:
    """Return the access pattern of a kernel with a result of shape `sizes` and operands with these two strides."""
    axes = _joined_axes(sizes, a_strides, b_strides)
    last = axes[-1]
    repeats = tuple(stride == 0 for stride in last[1:])
    # Entries are processed in fours if each operand has stride 0 or 1 along the last axis, and all other offsets are
    # multiples of four. An array with a single axis may have any length, since its buffer is padded.
    whole = len(axes) == 1 or last[0] % 4 == 0
    in_fours = [
        repeat or (last[k] == 1 and all(axis[k] % 4 == 0 for axis in axes[:-1])) for k, repeat in enumerate(repeats, 1)
    ]
    fours = whole and all(in_fours)
    if fours:
        axes[-1] = (-(-last[0] // 4), *last[1:])
        axes[:-1] = [
            (size, *(stride if repeat else stride // 4 for stride, repeat in zip(strides, repeats, strict=True)))
            for size, *strides in axes[:-1]
        ]
    table = np.zeros((3, MOST_AXES), np.uint32)
    table[:, : len(axes)] = np.array(axes, np.uint32).T
    rows = dict(zip(("sizes", "a_strides", "b_strides"), table.reshape(3, -1, 4), strict=True))
    return Walk({"fours": -(-math.prod(sizes) // 4), "rank": len(axes), **rows}, fours, *repeats)


def _joined_axes(sizes: Shape, a_strides: Shape, b_strides: Shape) -> list[tuple[int, ...]]:
    """Return `(size, a_stride, b_stride)` of each axis after merging axes that are contiguous in both operands."""
    # Two arrays of shape [2, 3, 4] have strides (12, 4, 1): they merge into one axis of size 24.
    axes: list[tuple[int, ...]] = []
    for size, a, b in zip(sizes, a_strides, b_strides, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == a * size and axes[-1][2] == b * size:
            axes[-1] = (axes[-1][0] * size, a, b)
        else:
            axes.append((size, a, b))
    return axes or [(1, 0, 0)]


def runs_of(shape: Shape, axes: Shape) -> list[tuple[int, int, int]]:
    """Return `(outer, count, inner)`, the sizes before, of and after each run of adjacent `axes`, last run first."""
    runs: list[tuple[int, int, int]] = []
    inner, count = 1, None
    for axis in range(len(shape) - 1, -1, -1):
        if axis in axes:
            count = shape[axis] * (1 if count is None else count)
        if count is not None and (axis not in axes or axis == 0):
            runs.append((math.prod(shape[: axis + (axis not in axes)]), count, inner))
            count = None
        if axis not in axes:
            inner *= shape[axis]
    return [run for run in runs if run[1] != 1]
