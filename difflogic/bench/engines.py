"""Engines to benchmark, with the measured rates of their devices."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from difflogic.bench.machine import copy_bytes_per_s
from difflogic.devices import open as placement
from difflogic.engine.api import Engine, EngineInfo
from difflogic.errors import DeviceError
from difflogic.system.processor import cores


@dataclass(frozen=True)
class OtherEngine:
    """Library that is measured for comparison but cannot run circuits, such as PyTorch."""

    info: EngineInfo


@dataclass(frozen=True)
class Bench:
    """Engine to benchmark, with the measured rates of its device."""

    name: str
    engine: Engine | OtherEngine
    copy_bytes_per_s: float
    dispatch_s: float = 0.0
    round_trip_s: float = 0.0
    timestamps: bool | None = None
    """True if the GPU supports timestamps for timing kernels; None without a GPU."""
    open_s: float = 0.0
    median_copy_bytes_per_s: float | None = None
    """Median of the measured copy rates, the best of which is `copy_bytes_per_s`; None if not measured."""

    @property
    def is_card(self) -> bool:
        """True if the engine runs on a hardware GPU, which reduces its clock rate while idle."""
        is_ours = self.engine.info.engine == "gpu" and not self.engine.info.software
        return is_ours or self.name == "torch:cuda"

    def to_dict(self) -> dict[str, Any]:
        """Return the engine's description as a dictionary for the results file."""
        return {
            **asdict(self.engine.info),
            "copy_gb_per_s": self.copy_bytes_per_s / 1e9,
            "copy_median_gb_per_s": self.median_copy_bytes_per_s and self.median_copy_bytes_per_s / 1e9,
            "dispatch_us": 1e6 * self.dispatch_s,
            "round_trip_us": 1e6 * self.round_trip_s,
            "open_ms": 1e3 * self.open_s,
            "timestamps": self.timestamps,
        }


def open_benches(selectors: Sequence[str], require_hardware: bool = False) -> list[Bench]:
    """Open the selected engines or, if `selectors` is empty, all available ones. Raises what `open_engine` raises."""
    if require_hardware and not any(name.startswith("gpu") for name in selectors):
        selectors = ("gpu", *selectors)
    if selectors:
        required = {name: require_hardware and name.startswith("gpu") for name in selectors}
        return [_bench(name, placement.open_engine(name, is_required)) for name, is_required in required.items()]
    opened = []
    for name in ("gpu", "cpu", "reference"):
        try:
            opened.append(_bench(name, placement.open_engine(name)))
        # The engine was not selected by name, so it can be omitted.
        except DeviceError:
            continue
    return opened


def _bench(name: str, engine: Engine) -> Bench:
    if engine.info.engine != "gpu":
        return Bench(name, engine, copy_bytes_per_s(cores()))
    from difflogic.gpu.adapter import TIMESTAMPS
    from difflogic.gpu.engine import GpuEngine
    from difflogic.gpu.timing import measure_rates

    # The rates are measured on the device that runs the cases: another device of the adapter may have a slower link.
    device = cast(GpuEngine, engine).device
    rates = measure_rates(device)
    timestamps = TIMESTAMPS in device.handle.features
    times = rates.dispatch_s, rates.round_trip_s, timestamps, rates.open_s
    return Bench(name, engine, rates.copy_bytes_per_s, *times, rates.median_copy_bytes_per_s)
