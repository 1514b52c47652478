"""Implementation of the arrays of `difflogic.tensor` on a GPU, with ten kernels.

Each method has the parameters of its NumPy reference in `difflogic.tensor.kernels`. Dispatches are collected and
submitted together; only `get` waits.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from difflogic.gpu.array_kernels import KERNELS, ArrayKernel, Shape, runs_of, strides_of, walk
from difflogic.gpu.buffer_pool import BufferPool, PooledBuffer
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import LINEAR_WG
from difflogic.gpu.plan import MAX_WORKGROUPS
from difflogic.gpu.submit import Dispatch, encode
from difflogic.gpu.uniforms import uniform_struct

T = TypeVar("T")
Host = npt.NDArray[Any]
Constants = dict[str, Any]
"""Mapping from names to values of a pipeline's `override` constants; the value of `OP` is an operation's name."""
LARGEST = float(np.finfo(np.float32).max)


MOST_PENDING = 256
"""Number of pending dispatches at which they are submitted."""
MOST_KEPT = 1024
"""Maximum number of entries in the cache of uniforms, and in the cache of constants."""
SHARERS = 64
ENTRIES = 64
"""Numbers of invocations per workgroup (SHARERS) and entries per invocation (ENTRIES) in a sum, as in the shaders."""
SIDE_BY_SIDE = 8
"""Maximum number of adjacent columns that a single workgroup sums."""
FEW = 32
"""Maximum length of a softmax row that a single invocation processes."""
TILE = 64
"""Side in entries of the square tile of a matrix product that a workgroup computes; twice that if WIDE is 1."""
MANY_TILES = {True: 1 << 32, False: 128}
"""Minimum number of wide tiles for a matrix product to use WIDE, by whether the adapter is software (then never)."""


class GpuArray:
    """Float32 array in a GPU buffer, in row-major order."""

    __slots__ = ("lease", "shape", "size")
    dtype = np.dtype(np.float32)

    def __init__(self, shape: Shape, lease: PooledBuffer | _Borrowed) -> None:
        self.shape = shape
        self.size = math.prod(shape)
        self.lease = lease

    @property
    def ndim(self) -> int:
        return len(self.shape)


class _Borrowed(NamedTuple):
    """Handle of a buffer that does not belong to a pool and is never returned to one."""

    buffer: Any


class GpuArrays:
    """GPU implementation of `difflogic.tensor.arrays.Arrays`; not thread-safe."""

    def __init__(self, device: GpuDevice) -> None:
        self.device = device
        self._pool = BufferPool(device)
        self._pipelines: dict[tuple[Any, ...], Any] = {}
        self._uniforms: OrderedDict[Any, Any] = OrderedDict()
        self._constants: OrderedDict[float, GpuArray] = OrderedDict()
        self._pending: list[Dispatch] = []
        device.before_waiting.append(self.flush)

    # Transfers to and from the device

    def put(self, values: Host, purpose: str = "arrays") -> GpuArray:
        x = GpuArray(values.shape, self._pool.take(4 * values.size))
        self._upload(x, values, purpose)
        return x

    def _upload(self, x: GpuArray, values: Host, purpose: str, first: int = 0) -> None:
        # An upload overtakes dispatches that are not submitted yet, and these may read the previous contents.
        self.flush()
        if values.size:
            self.device.upload(x.lease.buffer, values, purpose, 4 * first)

    def get(self, x: GpuArray) -> Host:
        """Submit pending dispatches, wait for them, and download the values of `x`."""
        self.flush()
        if not x.size:
            return np.zeros(x.shape, np.float32)
        return self.device.download(x.lease.buffer, np.float32, "arrays", 4 * x.size).reshape(x.shape)

    def constant(self, value: float, dtype: npt.DTypeLike) -> GpuArray:
        """Return `value` as a cached scalar array, which is uploaded at its first use."""
        return _kept(self._constants, value, lambda: self.put(np.asarray(value, dtype), "constants"))

    def assign(self, x: GpuArray, values: GpuArray | Host) -> None:
        if isinstance(values, np.ndarray):
            self._upload(x, values, "arrays")
        elif values.lease is not x.lease:
            self._copy(x, values, strides_of(x.shape, x.shape))

    def assign_rows(self, first: int, x: GpuArray, rows: Host) -> None:
        """Overwrite the rows of `x` that begin at index `first` with `rows`."""
        self._upload(x, rows, "arrays", first * x.size // x.shape[0])

    def flush(self) -> None:
        """Submit all pending dispatches."""
        if self._pending:
            self.device.queue.submit([encode(self.device, self._pending).finish()])
            self._pending.clear()

    # Dispatches and buffers of workspaces

    def run(self, dispatches: Sequence[Dispatch], owner: Any) -> None:
        """Submit all pending dispatches, then `dispatches` of a workspace `owner`, which contains their buffers."""
        self.flush()
        owner.submit(dispatches)

    def copy_to(self, buffer: Any, x: GpuArray) -> None:
        """Copy `x` to the beginning of `buffer`, whose size must be at least that of `x` rounded up to four entries."""
        self._copy(GpuArray(x.shape, _Borrowed(buffer)), x, strides_of(x.shape, x.shape))

    def copy_of(self, buffer: Any, shape: Shape, strides: Shape) -> GpuArray:
        """Return a copy of an array of `shape` in `buffer`, where its axes have these `strides` in entries."""
        return self._copy(self._new(shape), GpuArray(shape, _Borrowed(buffer)), strides)

    # Shapes

    def reshape(self, shape: Shape, x: GpuArray) -> GpuArray:
        return GpuArray(shape, x.lease)

    def expand(self, shape: Shape, x: GpuArray) -> GpuArray:
        """Return `x` broadcast to `shape`."""
        return x if x.shape == shape else self._copy(self._new(shape), x, strides_of(x.shape, shape))

    def transpose(self, axes: Shape, x: GpuArray) -> GpuArray:
        strides = strides_of(x.shape, x.shape)
        shape = tuple(x.shape[axis] for axis in axes)
        return self._copy(self._new(shape), x, tuple(strides[axis] for axis in axes))

    def gather(self, places: GpuArray, x: GpuArray) -> GpuArray:
        y = self._new((places.size, *x.shape[1:]))
        sizes = {"count": y.size, "width": y.size // max(1, places.size)}
        self._dispatch("gather", {"WG": LINEAR_WG}, sizes, (places, x, y), -(-y.size // LINEAR_WG))
        return y

    def _copy(self, y: GpuArray, x: GpuArray, strides: Shape) -> GpuArray:
        self._strided("binary", "first", (x, x, y), strides, strides)
        return y

    # Kernels

    def unary(self, op: str, x: GpuArray) -> GpuArray:
        return self._by_fours("unary", op, x)

    def d_unary(self, op: str, d_y: GpuArray, saved: GpuArray) -> GpuArray:
        return self._by_fours("d_unary", op, d_y, saved)

    def _by_fours(self, kernel: str, op: str, *given: GpuArray) -> GpuArray:
        y, fours = self._new(given[0].shape), -(-given[0].size // 4)
        self._dispatch(kernel, {"WG": LINEAR_WG, "OP": op}, {"fours": fours}, (*given, y), -(-fours // LINEAR_WG))
        return y

    def binary(self, op: str, a: GpuArray, b: GpuArray) -> GpuArray:
        """Apply the binary operation `op` with broadcasting. Raises ValueError if the shapes do not broadcast."""
        y = self._new(a.shape if a.shape == b.shape else np.broadcast_shapes(a.shape, b.shape))
        self._strided("binary", op, (a, b, y), strides_of(a.shape, y.shape), strides_of(b.shape, y.shape))
        return y

    def d_binary(self, op: str, d_y: GpuArray, a: GpuArray, b: GpuArray) -> GpuArray:
        d = self._new(d_y.shape)
        self._strided("d_binary", op, (d_y, a, b, d), strides_of(a.shape, d.shape), strides_of(b.shape, d.shape))
        return d

    def _strided(self, kernel: str, op: str, given: Sequence[GpuArray], a: Shape, b: Shape) -> None:
        y = given[-1]
        if not y.size:
            return
        way = walk(y.shape, a, b)
        repeats = {"REPEAT_A": way.repeat_a, "REPEAT_B": way.repeat_b}
        constants = {"OP": op, "WG": LINEAR_WG, "FOURS": way.fours, **repeats}
        sizes = {"sizes": y.shape, "a_strides": a, "b_strides": b}
        self._dispatch(kernel, constants, sizes, given, -(-y.size // (4 * LINEAR_WG)))

    def matmul(self, a: GpuArray, b: GpuArray, transpose_a: bool = False, transpose_b: bool = False) -> GpuArray:
        rows, inner = a.shape[::-1] if transpose_a else a.shape
        columns = b.shape[0 if transpose_b else 1]
        y = self._new((rows, columns))
        # Wide tiles, with four times the entries, are used if they suffice to fill a GPU. They do not change the sums.
        many = MANY_TILES[self.device.adapter.software]
        is_wide = -(-rows // (2 * TILE)) * -(-columns // (2 * TILE)) >= many
        side = 2 * TILE if is_wide else TILE
        constants = {"TRANSPOSE_A": transpose_a, "TRANSPOSE_B": transpose_b, "WIDE": is_wide}
        sizes = {"rows": rows, "columns": columns, "inner": inner}
        self._dispatch("matmul", constants, sizes, (a, b, y), -(-rows // side) * -(-columns // side))
        return y

    def reduce(self, op: str, axes: Shape, x: GpuArray) -> GpuArray:
        shape = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
        runs = runs_of(x.shape, axes)
        # Adjacent axes form a run, which is summed as one axis. Runs are summed one after another, the last first.
        for outer, count, inner in runs if runs or op == "sum" else [(x.size, 1, 1)]:
            while True:
                x, count = self._sum_parts(op, outer, count, inner, x)
                op = "sum"
                if count == 1:
                    break
        return self.reshape(shape, x)

    def _sum_parts(self, op: str, outer: int, count: int, inner: int, x: GpuArray) -> tuple[GpuArray, int]:
        """Return partial sums `[outer, parts, inner]` of `x` `[outer, count, inner]`, and the number `parts`."""
        lanes = SHARERS if inner < SIDE_BY_SIDE else SHARERS // SIDE_BY_SIDE
        parts = max(1, -(-count // (ENTRIES * lanes)))
        y = self._new((outer, parts, inner))
        sizes = {"outer": outer, "count": count, "inner": inner, "parts": parts}
        groups = outer * parts * -(-inner * lanes // SHARERS)
        self._dispatch("reduce", {"OP": op, "LANES": lanes}, sizes, (x, y), groups)
        return y, parts

    def softmax(self, axis: int, x: GpuArray) -> GpuArray:
        return self._by_rows("softmax", axis, x)

    def d_softmax(self, axis: int, d_y: GpuArray, y: GpuArray) -> GpuArray:
        return self._by_rows("d_softmax", axis, d_y, y)

    def _by_rows(self, kernel: str, axis: int, *given: GpuArray) -> GpuArray:
        y = self._new(given[0].shape)
        outer, count, inner = math.prod(y.shape[:axis]), y.shape[axis], math.prod(y.shape[axis + 1 :])
        lanes = 1 if count <= FEW else SHARERS
        sizes = {"outer": outer, "count": count, "inner": inner}
        self._dispatch(kernel, {"LANES": lanes}, sizes, (*given, y), -(-outer * inner * lanes // SHARERS))
        return y

    def adam(self, hyper: tuple[float, float, float, float], *state: GpuArray) -> None:
        """Apply one Adam step; `hyper` is (beta1, beta2, epsilon, max_norm); `state` is as in the NumPy reference."""
        names = ("beta1", "beta2", "epsilon", "max_norm")
        fields = dict(zip(names, (min(each, LARGEST) for each in hyper), strict=True))
        entries = state[-1].size
        self._dispatch("adam", {"WG": LINEAR_WG}, {"entries": entries, **fields}, state, -(-entries // LINEAR_WG))

    # Dispatches

    def _new(self, shape: Shape) -> GpuArray:
        return GpuArray(shape, self._pool.take(4 * math.prod(shape)))

    def _dispatch(
        self, name: str, constants: Constants, sizes: dict[str, Any], given: Sequence[GpuArray], groups: int
    ) -> None:
        """Append a dispatch of `groups` workgroups; `given` are its arrays, without the uniform."""
        if not groups:
            return
        kernel = KERNELS[name]
        uniform, *arrays = kernel.source.bindings
        buffers = {each.name: x.lease.buffer for each, x in zip(arrays, given, strict=True)}
        key = kernel.name, *sizes.values()
        buffers[uniform.name] = _kept(self._uniforms, key, lambda: self._new_uniform(kernel, sizes))
        group = self.device.bind(kernel.source, buffers)
        dispatch = Dispatch(name, self._pipeline(kernel, constants), group, min(groups, MAX_WORKGROUPS), 1)
        self._pending.append(dispatch)
        if len(self._pending) >= MOST_PENDING:
            self.flush()

    def _pipeline(self, kernel: ArrayKernel, constants: Constants) -> Any:
        key = kernel.name, *constants.values()
        if key not in self._pipelines:
            numbers = {k: kernel.ops.index(v) if isinstance(v, str) else int(v) for k, v in constants.items()}
            # Array indices in `matmul` depend only on its sizes, so that it needs no bounds checks.
            is_trusted = kernel.name == "matmul" and self.device.trusts_kernels
            module = self.device.module(kernel.source, is_trusted)
            self._pipelines[key] = self.device.new_pipeline(kernel.source, module, numbers)
        return self._pipelines[key]

    def _new_uniform(self, kernel: ArrayKernel, sizes: dict[str, Any]) -> Any:
        fields = walk(**sizes).fields if "sizes" in sizes else sizes
        packed = uniform_struct(kernel.source.name, kernel.struct).pack(fields)
        buffer = self.device.buffer("shape", len(packed), uniform=True)
        self.device.upload(buffer, packed, "shape")
        return buffer


def _kept(cache: OrderedDict[Any, T], key: Any, make: Callable[[], T]) -> T:
    """Return the cached value of `key`, or cache and return `make()`; a full cache evicts the least recently used."""
    if key in cache:
        cache.move_to_end(key)
        return cache[key]
    made = cache[key] = make()
    if len(cache) > MOST_KEPT:
        cache.popitem(last=False)
    return made
