"""Open engines. Only this module chooses between engines, and only it imports `gpu/` and `cpu/`."""

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
_NO_WGPU = "The GPU engine needs the package wgpu, which cannot be loaded: {}."


@dataclass(frozen=True)
class Placement:
    """Engine and the reason for choosing it."""

    engine: Engine
    reason: str = "the engine was given"
    max_memory: int | None = None
    """Bytes of device memory that training may use."""
    candidate: Candidate | None = None
    """Another engine to compare within the first epochs: see `difflogic.devices.race`."""


def parse(selector: str) -> tuple[str, str | None]:
    """Split a selector into the kind of engine and the GPU adapter. Raises UsageError if it is unknown."""
    kind, colon, which = selector.partition(":")
    if kind == "gpu" and (which or not colon):
        return kind, which or None
    if selector not in ("auto", *_WITHOUT_GPU):
        raise UsageError(f"Unknown engine {selector!r}: expected {EXPECTED}.")
    return selector, None


class Named(Protocol):
    """Object whose text is a selector, such as a `difflogic.devices.device.Device`."""

    @property
    def selector(self) -> str: ...


def open_engine(selector: str | Named = "auto", require_hardware: bool = False) -> Engine:
    """Open an engine.

        >>> difflogic.open_engine("reference").info.engine
        'reference'

    Args:
        selector: `auto`, `cpu`, `reference`, `gpu`, `gpu:INDEX`, `gpu:NAME`, or a `Device`.
        require_hardware: Whether to refuse everything but a hardware GPU.

    Returns:
        The engine.

    Raises:
        UsageError: The selector is unknown.
        NoAdapterError: There is no such adapter.
        DeviceError: The adapter cannot be used; the message says why.
    """
    return place(selector if isinstance(selector, str) else selector.selector, require_hardware).engine


def place(selector: str = "auto", require_hardware: bool = False, trusted: bool = False) -> Placement:
    """Open an engine: `auto`, `cpu`, `reference`, `gpu`, `gpu:INDEX` or `gpu:NAME`.

    `auto` takes a hardware GPU, else the CPU engine; if that cannot be loaded, a software adapter, else the
    reference. Any other selector opens that engine or fails. `require_hardware` accepts hardware GPUs only.
    `trusted`, for real training, accepts only adapters that passed the self-test, which may first run for seconds.
    Raises UsageError for an unknown selector, NoAdapterError and other DeviceErrors.
    """
    kind, which = parse(selector)
    if kind == "auto":
        return _auto(require_hardware, trusted)
    if kind == "gpu":
        return Placement(_open_gpu(which, require_hardware, trusted), f"{selector} was asked for")
    if require_hardware:
        raise UsageError(f"The {selector} engine runs on the CPU: drop --require-hardware, or ask for gpu or auto.")
    return Placement(_WITHOUT_GPU[selector](), f"{selector} was asked for")


def share(selectors: Sequence[str], earlier: EngineInfo | None = None, require_hardware: bool = False) -> Placement:
    """Open several devices that share a population, divided as before if `earlier` names the same devices.

    Raises UsageError for a device that is given twice or unknown, and what `place` raises.
    """
    kinds = [parse(each) for each in selectors]  # what cannot be is refused before an engine loads
    placed = [place(each, require_hardware, trusted=True).engine for each in selectors if len(set(kinds)) > 1]
    names = [engine.selector for engine in placed]
    if len(set(names)) < max(2, len(selectors)):
        raise UsageError(f"A population is shared by two devices or more, each named once, got {', '.join(selectors)}.")
    known = None if earlier is None or list(earlier.variant) != names else list(earlier.variant.values())
    made = cast("Engine", shared.SharedEngine(placed, known))
    return Placement(made, f"the population is shared by {', '.join(names)}")


def place_again(earlier: EngineInfo | None, require_hardware: bool = False, trusted: bool = False) -> Placement:
    """Open the engine of a run that is resumed, or `auto` if it is unknown.

    Another adapter replaces one that is missing, which the trainer reports. Raises as `place` does.
    """
    if earlier is None:
        return place("auto", require_hardware, trusted)
    if earlier.engine == shared.NAME:
        return share(list(earlier.variant), earlier, require_hardware)
    if earlier.engine != "gpu":
        return replace(place(earlier.engine, require_hardware), reason="the run was on it before")
    try:
        # By name, since the index changes if a card is added.
        return replace(place(f"gpu:{earlier.adapter}", require_hardware, trusted), reason="the run was on it before")
    except NoAdapterError:
        reason = f"the run was on {earlier.adapter}, which is not here now"
        return replace(place("gpu", require_hardware, trusted), reason=reason)


def place_hard(earlier: EngineInfo | None) -> Placement:
    """Open the engine for hard rollouts of a run: its hardware GPU if this machine has it, otherwise the CPU engine.

    If that cannot be loaded, as `place_again`; if the run's engine is unknown, as `auto`.
    """
    if earlier is None:
        return place("auto", trusted=True)
    # Hard circuits give the same bits on every engine, so a missing one is replaced without a message.
    if earlier.engine == "gpu" and not earlier.software:
        with suppress(DeviceError):
            return place(f"gpu:{earlier.adapter}", require_hardware=True, trusted=True)
    try:
        return place("cpu")
    except DeviceError:
        return place_again(earlier, trusted=True)


def _auto(require_hardware: bool, trusted: bool) -> Placement:
    errors: list[DeviceError] = []
    # The first hardware GPU in the system's order; if it fails its self-test, the next one.
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
        why = "auto found no hardware GPU that can be used (run difflogic doctor for details)"
    try:
        # By speed: the CPU engine, a software adapter, the reference.
        return Placement(_open_cpu(), why)
    except DeviceError as error:
        why = f"{why}, and no CPU engine: {error}"
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
        raise DeviceError(f"The CPU engine needs the package numba, which cannot be loaded: {error}.") from error
    return CpuEngine()


_WITHOUT_GPU: dict[str, Callable[[], Engine]] = {"cpu": _open_cpu, "reference": _open_reference}


def _open_gpu(which: str | None, require_hardware: bool, trusted: bool) -> Engine:
    try:
        from difflogic.gpu.engine import GpuEngine

        if trusted:  # before a device is opened here: a broken driver may end the process
            from difflogic.devices import selftest

            selftest.require(gpu_adapter(which, require_hardware))
        return GpuEngine.on(which, require_hardware)
    except ImportError as error:  # of wgpu, which the first adapter that is listed loads
        raise NoAdapterError(_NO_WGPU.format(error)) from error


def open_local_search(job: Job) -> LocalSearch:
    """Open the search over hard circuits; every engine finds the same circuits."""
    try:
        from difflogic.cpu.local_search import CpuLocalSearch
    except ImportError:  # as `auto` does
        from difflogic.reference.local_search import ReferenceLocalSearch

        return ReferenceLocalSearch(job)
    return CpuLocalSearch(job)


def hardware_gpus() -> list[int]:
    """Return the indices of the hardware GPUs of this machine."""
    return [adapter.index for adapter in gpu_adapters() if not adapter.software]


def gpu_adapters() -> Sequence[Adapter]:
    """Return the GPU adapters of this machine, hardware first; none if wgpu cannot be loaded."""
    try:
        from difflogic.gpu.adapter import list_adapters

        return list_adapters()  # which is what loads wgpu
    except ImportError:
        return ()


def gpu_adapter(which: str | None, require_hardware: bool = False) -> Adapter:
    """Return the GPU adapter with this index or name, or the first. Raises NoAdapterError."""
    try:
        from difflogic.gpu.adapter import select_adapter

        return select_adapter(which, require_hardware)
    except ImportError as error:
        raise NoAdapterError(_NO_WGPU.format(error)) from error
