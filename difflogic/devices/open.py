"""Open engines by selector. Only this module chooses between engines and imports `gpu/` and `cpu/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, cast

from difflogic.devices import shared
from difflogic.devices.race import Candidate
from difflogic.engine.api import Engine, EngineInfo
from difflogic.engine.job import Job
from difflogic.engine.search import LocalSearch
from difflogic.errors import DeviceError, NoAdapterError, UsageError

if TYPE_CHECKING:
    from difflogic.gpu.adapter import Adapter

EXPECTED = "auto, cpu, reference, gpu, gpu:INDEX or gpu:NAME"
_NO_WGPU = "The GPU engine requires the package wgpu, which could not be loaded: {}."


@dataclass(frozen=True)
class Placement:
    """Open engine for a run, and the reason for choosing it."""

    engine: Engine
    reason: str = "the engine was given"
    max_memory: int | None = None
    """Maximum number of bytes of device memory for training; None for no limit."""
    candidate: Candidate | None = None
    """Second engine for a benchmark in the first epochs (`difflogic.devices.race`); None for no benchmark."""


def parse(selector: str) -> tuple[str, str | None]:
    """Return the kind of engine and the GPU adapter (or None) that a selector names. Raises UsageError if unknown."""
    kind, colon, which = selector.partition(":")
    if kind == "gpu" and (which or not colon):
        return kind, which or None
    if selector not in ("auto", *_WITHOUT_GPU):
        raise UsageError(f"Unknown engine {selector!r}: expected {EXPECTED}.")
    return selector, None


class Named(Protocol):
    """Protocol of objects with a selector, such as `difflogic.devices.device.Device`."""

    @property
    def selector(self) -> str: ...


def open_engine(selector: str | Named = "auto", require_hardware: bool = False) -> Engine:
    """Open the engine that a selector names.

        >>> difflogic.open_engine("reference").info.engine
        'reference'

    Args:
        selector: `auto`, `cpu`, `reference`, `gpu`, `gpu:INDEX`, `gpu:NAME`, or a `Device`.
        require_hardware: True to accept only hardware GPUs.

    Returns:
        The engine.

    Raises:
        UsageError: The selector is unknown.
        NoAdapterError: No adapter matches the selector.
        DeviceError: The adapter or the CPU engine cannot be used; the message gives the reason.
    """
    return place(selector if isinstance(selector, str) else selector.selector, require_hardware).engine


def place(selector: str = "auto", require_hardware: bool = False, trusted: bool = False) -> Placement:
    """Open an engine by its selector: `auto`, `cpu`, `reference`, `gpu`, `gpu:INDEX` or `gpu:NAME`.

    `auto` opens the first engine available, in the order hardware GPU, CPU engine, software adapter, reference. Another
    selector opens its engine or fails. `require_hardware` accepts only hardware GPUs. `trusted`, which training sets,
    accepts only adapters that pass the self-test; if there is no earlier result, the test runs, which takes seconds.
    Raises UsageError for an unknown selector, NoAdapterError or another DeviceError.
    """
    kind, which = parse(selector)
    if kind == "auto":
        return _auto(require_hardware, trusted)
    if kind == "gpu":
        return Placement(_open_gpu(which, require_hardware, trusted), f"{selector} was requested")
    if require_hardware:
        raise UsageError(f"The {selector} engine runs on the CPU: omit --require-hardware, or use gpu or auto.")
    return Placement(_WITHOUT_GPU[selector](), f"{selector} was requested")


def share(selectors: Sequence[str], earlier: EngineInfo | None = None, require_hardware: bool = False) -> Placement:
    """Open several devices that share a population, with the shares in `earlier` if it used the same devices.

    Raises UsageError for an unknown or repeated device; exceptions of `place` are passed on.
    """
    kinds = [parse(each) for each in selectors]  # refuse unknown selectors before any engine loads
    placed = [place(each, require_hardware, trusted=True).engine for each in selectors if len(set(kinds)) > 1]
    names = [engine.selector for engine in placed]
    if len(set(names)) < max(2, len(selectors)):
        raise UsageError(f"Expected at least two devices, each named once, got {', '.join(selectors)}.")
    known = None if earlier is None or list(earlier.variant) != names else list(earlier.variant.values())
    made = cast("Engine", shared.SharedEngine(placed, known))
    return Placement(made, f"the population is shared by {', '.join(names)}")


def place_again(earlier: EngineInfo | None, require_hardware: bool = False, trusted: bool = False) -> Placement:
    """Open the engine `earlier` of a run that is resumed, or `auto` if it is None.

    If the adapter is missing, another adapter is opened, which the trainer reports. Exceptions are those of `place`.
    """
    if earlier is None:
        return place("auto", require_hardware, trusted)
    if earlier.engine == shared.NAME:
        return share(list(earlier.variant), earlier, require_hardware)
    if earlier.engine != "gpu":
        return replace(place(earlier.engine, require_hardware), reason="the run was on it before")
    try:
        # Select the adapter by name, since its index changes if a card is added.
        return replace(place(f"gpu:{earlier.adapter}", require_hardware, trusted), reason="the run was on it before")
    except NoAdapterError:
        reason = f"the run was on {earlier.adapter}, which is not here now"
        return replace(place("gpu", require_hardware, trusted), reason=reason)


def place_hard(earlier: EngineInfo | None) -> Placement:
    """Open an engine for hard rollouts: a run's hardware GPU `earlier` if available, otherwise the CPU engine.

    If the CPU engine cannot be loaded, acts like `place_again`. If `earlier` is None, opens `auto`.
    """
    if earlier is None:
        return place("auto", trusted=True)
    # Hard circuits give the same bits on every engine, so a missing GPU is replaced without a message.
    if earlier.engine == "gpu" and not earlier.software:
        with suppress(DeviceError):
            return place(f"gpu:{earlier.adapter}", require_hardware=True, trusted=True)
    try:
        return place("cpu")
    except DeviceError:
        return place_again(earlier, trusted=True)


def _auto(require_hardware: bool, trusted: bool) -> Placement:
    errors: list[DeviceError] = []
    # Try the hardware GPUs in the system's order, until one passes its self-test.
    for which in (None, *map(str, hardware_gpus()[1:])):
        try:
            engine = _open_gpu(which, True, trusted)
        except DeviceError as error:
            errors.append(error)
        else:
            passed_over = f", since {errors[0]}" if errors else ""
            return Placement(engine, f"auto found the hardware GPU {engine.info.adapter}{passed_over}")
    # The error of the first adapter is the most informative one.
    if require_hardware:
        raise errors[0]
    why = f"auto found no usable hardware GPU: {errors[0]}"
    if isinstance(errors[0], NoAdapterError):
        why = "auto found no usable hardware GPU (run `difflogic doctor` for details)"
    try:
        # In order of speed: the CPU engine, a software adapter, the reference.
        return Placement(_open_cpu(), why)
    except DeviceError as error:
        why = f"{why}, and the CPU engine is not available: {error}"
    with suppress(DeviceError):
        return Placement(_open_gpu(None, False, trusted), why)
    return Placement(_open_reference(), why)


def _open_reference() -> Engine:
    from difflogic.reference.engine import ReferenceEngine

    return ReferenceEngine()


def _open_cpu() -> Engine:
    try:
        from difflogic.cpu.engine import CpuEngine
    except ImportError as error:
        raise DeviceError(f"The CPU engine requires the package numba, which could not be loaded: {error}.") from error
    return CpuEngine()


_WITHOUT_GPU: dict[str, Callable[[], Engine]] = {"cpu": _open_cpu, "reference": _open_reference}


def _open_gpu(which: str | None, require_hardware: bool, trusted: bool) -> Engine:
    try:
        from difflogic.gpu.engine import GpuEngine

        if trusted:  # test in a child process first: a broken driver may end the process that opens the device
            from difflogic.devices import selftest

            selftest.require(gpu_adapter(which, require_hardware))
        return GpuEngine.on(which, require_hardware)
    except ImportError as error:  # listing adapters imports wgpu
        raise NoAdapterError(_NO_WGPU.format(error)) from error


def open_local_search(job: Job) -> LocalSearch:
    """Open a local search on the CPU engine or, if this cannot be loaded, on the reference, with equal results."""
    try:
        from difflogic.cpu.local_search import CpuLocalSearch
    except ImportError:  # use the reference, like `auto`
        from difflogic.reference.local_search import ReferenceLocalSearch

        return ReferenceLocalSearch(job)
    return CpuLocalSearch(job)


def hardware_gpus() -> list[int]:
    """Return the indices of the hardware GPUs of this machine."""
    return [adapter.index for adapter in gpu_adapters() if not adapter.software]


def gpu_adapters() -> Sequence[Adapter]:
    """Return the GPU adapters of this machine, hardware GPUs first; () if wgpu cannot be loaded."""
    try:
        from difflogic.gpu.adapter import list_adapters

        return list_adapters()  # imports wgpu
    except ImportError:
        return ()


def gpu_adapter(which: str | None, require_hardware: bool = False) -> Adapter:
    """Return the GPU adapter with the index or name `which` (None for the first adapter). Raises NoAdapterError."""
    try:
        from difflogic.gpu.adapter import select_adapter

        return select_adapter(which, require_hardware)
    except ImportError as error:
        raise NoAdapterError(_NO_WGPU.format(error)) from error
