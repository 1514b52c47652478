"""Measure device time with timestamps around each group of dispatches, and the device's maximum rates.

A group is a sequence of dispatches of one kernel. Each group is a separate pass, because WebGPU writes timestamps only
at the ends of passes. Without timestamps, each group is submitted separately and timed by the host's clock.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from difflogic.errors import LimitError
from difflogic.gpu.adapter import TIMESTAMPS, Adapter, open_device
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.shaders import Source
from difflogic.gpu.submit import Dispatch, encode_pass

COPY_BYTES = {True: 64 << 20, False: 1 << 30}
"""Size in bytes of the copied buffer, much larger than any cache, keyed by whether the adapter is software."""
COPIES = 8
"""Number of buffer copies per submit when the copy rate is measured."""
EMPTY_DISPATCHES = 1000
RATE_ROUNDS = 5
WAKE_SECONDS = 0.5
"""Seconds of work after which an idle card runs at its full clock rate (an idle H200 runs at 345 of 1,980 MHz)."""
ROUND_TRIPS = 3
"""Number of round trips to measure; the shortest one counts."""
MOST_QUERIES = 4096
"""Maximum size of a query set that every WebGPU implementation supports."""

EMPTY = """
@group(0) @binding(0) var<storage, read_write> word: array<u32>;
@compute @workgroup_size(1) fn main() { word[0] += 1u; }
"""
"""WGSL source of a kernel with almost no work, whose dispatches must each wait for the previous one."""

COPY = """
@group(0) @binding(0) var<storage, read> original: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> copied: array<vec4<u32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) item: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = item.x; i < arrayLength(&original); i += 256u * groups.x) { copied[i] = original[i]; }
}
"""
"""WGSL source of a copying kernel, since copy commands may use a separate unit that is slower than the memory."""


def wake(device: GpuDevice, work: Callable[[], object]) -> None:
    """Repeat `work` for WAKE_SECONDS to raise a card's clock rate; return immediately on a software adapter."""
    begin = time.perf_counter()
    while not device.adapter.software and time.perf_counter() - begin < WAKE_SECONDS:
        work()


@dataclass(frozen=True)
class DeviceTimes:
    """Mean seconds per run of a dispatch list: for each kernel, for encoding, for submitting, and for waiting."""

    kernels: dict[str, float]
    counts: dict[str, int]
    """Number of dispatches per kernel."""
    encode: float
    submit: float
    wait: float
    timestamps: bool
    """False if the host's clock timed the kernels, so that each time includes a round trip."""
    gaps: float = 0.0
    """Seconds between groups of dispatches; 0 without timestamps."""
    round_trip: float = 0.0
    """Seconds to submit an empty list and read a result."""

    @property
    def wall(self) -> float:
        return self.encode + self.submit + self.wait


class Timer:
    """Timer of one dispatch list, with `repeat` runs per submit."""

    def __init__(self, device: GpuDevice, dispatches: Sequence[Dispatch], repeat: int = 1) -> None:
        import wgpu

        self.device = device
        self._groups = [(kernel, list(group)) for kernel, group in groupby(dispatches, key=lambda each: each.kernel)]
        self._timestamps = TIMESTAMPS in device.handle.features
        # A group needs two timestamps, and the size of a query set is limited.
        self._repeat = max(1, min(repeat, MOST_QUERIES // (2 * len(self._groups))))
        queries = 2 * len(self._groups) * self._repeat
        size = 8 * queries
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._ticks = device.handle.create_buffer(label="ticks", size=size, usage=usage)
        self._staging = device.staging("ticks staging", size)
        self._queries = (
            device.handle.create_query_set(label="ticks", type="timestamp", count=queries) if self._timestamps else None
        )

    def measure(self) -> DeviceTimes:
        """Measure one submit of `repeat` runs; they have all usual effects, so a train step changes the model."""
        encode, submit, wait, ticks = self._submit(self._encode)
        gaps = round_trip = 0.0
        if self._timestamps:
            gaps = float(np.maximum(ticks[2::2] - ticks[1:-1:2], 0).sum()) * _period(self.device)
            round_trip = min(self._submit(lambda encoder: None)[2] for _ in range(ROUND_TRIPS))
            # Timestamps alternate: beginning and end of a group. A gap is from an end to the next beginning.
            spans = (ticks[1::2] - ticks[0::2]).reshape(self._repeat, -1) * _period(self.device)
            seconds = spans.mean(axis=0)
        else:
            seconds = np.array([self._alone(group) for _, group in self._groups])
        kernels: dict[str, float] = {}
        counts: dict[str, int] = {}
        for (kernel, group), each in zip(self._groups, seconds, strict=True):
            kernels[kernel] = kernels.get(kernel, 0.0) + float(each)
            counts[kernel] = counts.get(kernel, 0) + len(group)
        encode, submit, wait, gaps, round_trip = (
            each / self._repeat for each in (encode, submit, wait, gaps, round_trip)
        )
        return DeviceTimes(kernels, counts, encode, submit, wait, self._timestamps, gaps, round_trip)

    @property
    def gap_count(self) -> int:
        """Number of gaps between groups per run, including the gap before the next run, if any."""
        return len(self._groups) - (self._repeat == 1)

    def _submit(self, encode: Callable[[Any], None]) -> tuple[float, float, float, Any]:
        """Submit the commands that `encode` records; return seconds to encode, submit and wait, and the timestamps."""
        begin = time.perf_counter()
        encoder = self.device.handle.create_command_encoder()
        encode(encoder)
        encoder.copy_buffer_to_buffer(self._ticks, 0, self._staging, 0, self._ticks.size)
        commands = encoder.finish()
        encoded = time.perf_counter()
        self.device.queue.submit([commands])
        submitted = time.perf_counter()
        ticks = self.device.read_staging(self._staging, self._ticks.size, np.int64, "timing")
        return encoded - begin, submitted - encoded, time.perf_counter() - submitted, ticks

    def _encode(self, encoder: Any) -> None:
        if self._queries is None:
            for _ in range(self._repeat):
                encode_pass(encoder, [each for _, group in self._groups for each in group])
            return
        query = 0
        for _ in range(self._repeat):
            for _, group in self._groups:
                ends = {"beginning_of_pass_write_index": query, "end_of_pass_write_index": query + 1}
                encode_pass(encoder, group, {"query_set": self._queries, **ends})
                query += 2
        encoder.resolve_query_set(self._queries, 0, query, self._ticks, 0)

    def _alone(self, group: Sequence[Dispatch]) -> float:
        # Encoding happens on the host, before the device begins.
        return sum(self._submit(lambda encoder: encode_pass(encoder, group))[1:3])

    def round_trip(self) -> float:
        """Return the seconds to submit an empty list and read the buffer of timestamps."""
        return sum(self._submit(lambda encoder: None)[:3])

    def close(self) -> None:
        for each in (self._ticks, self._staging, *([self._queries] if self._queries else [])):
            each.destroy()


def _period(device: GpuDevice) -> float:
    """Return the number of seconds per timestamp tick, since wgpu-native does not convert the driver's ticks."""
    from wgpu.backends.wgpu_native import extras

    return 1e-9 * float(extras.lib.wgpuQueueGetTimestampPeriod(device.queue._internal))


@dataclass(frozen=True)
class Rates:
    """Best measured rates of a device."""

    copy_bytes_per_s: float
    """Best rate in bytes per second of a copying shader; each byte counts twice, as read and as written."""
    median_copy_bytes_per_s: float
    dispatch_s: float
    """Seconds per empty dispatch that waits for the previous dispatch."""
    round_trip_s: float
    """Seconds to submit an empty list and read 4 bytes."""
    open_s: float
    """Seconds to open a device after the adapters have been listed."""


def measure_rates(device: GpuDevice) -> Rates:
    """Measure the rates of a device at its full clock rate, which takes about two seconds."""
    source, target = _copy_buffers(device)
    groups = min(-(-source.size // (16 * 256)), device.limits["max-compute-workgroups-per-dimension"])
    copy = _dispatch(device, "copy", COPY, {"original": source, "copied": target}, groups)
    empty = _dispatch(device, "empty", EMPTY, {"word": target}, 1)
    copying, waiting = Timer(device, [copy] * COPIES), Timer(device, [empty] * EMPTY_DISPATCHES)
    wake(device, copying.measure)
    copies, gaps = ([timer.measure().kernels for _ in range(RATE_ROUNDS)] for timer in (copying, waiting))
    round_trip = statistics.median(waiting.round_trip() for _ in range(20))
    # Without timestamps, each measured time includes a round trip.
    overhead = 0.0 if TIMESTAMPS in device.handle.features else round_trip
    seconds = [max(each["copy"] - overhead, 1e-9) / COPIES for each in copies]
    for each in (copying, waiting):
        each.close()
    for buffer in (source, target):
        buffer.destroy()
    return Rates(
        copy_bytes_per_s=2 * source.size / min(seconds),
        median_copy_bytes_per_s=2 * source.size / statistics.median(seconds),
        dispatch_s=max(statistics.median(each["empty"] for each in gaps) - overhead, 0.0) / EMPTY_DISPATCHES,
        round_trip_s=round_trip,
        open_s=statistics.median(_opening(device.adapter) for _ in range(3)),
    )


def _copy_buffers(device: GpuDevice) -> tuple[Any, Any]:
    """Return a source and a target buffer of COPY_BYTES, or of a smaller size that the device can bind and allocate."""
    limits = device.limits["max-storage-buffer-binding-size"], device.limits["max-buffer-size"]
    size = min(COPY_BYTES[device.adapter.software], *limits)
    while True:
        source = None
        try:
            source = device.buffer("copy source", size // 16 * 16)
            return source, device.buffer("copy target", source.size)
        except LimitError:
            if source is not None:
                source.destroy()
            if size < 1 << 20:
                raise
            size //= 2


def _dispatch(device: GpuDevice, name: str, text: str, buffers: dict[str, Any], groups: int) -> Dispatch:
    """Return a dispatch of the shader `text`; `buffers` maps the names of its bindings to buffers."""
    source = Source(name, text, ())
    pipeline = device.new_pipeline(source, device.compile(source), {})
    return Dispatch(name, pipeline, device.bind(source, buffers), groups, 1)


def _opening(adapter: Adapter) -> float:
    begin = time.perf_counter()
    handle = open_device(adapter)
    seconds = time.perf_counter() - begin
    handle.destroy()
    return seconds
