"""Profile a train step by kernel, phase and part of the host's work."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from difflogic.engine.api import Model

_KERNELS = {
    "start": "prepare seed_grid seed_boards same_start draw_pool draw_samples rule_target draw_corners draw_faults "
    "fire_mask harden",
    "forward": "coefficients gate_forward damage faults",
    "loss": "step_loss loss",
    "backward": "gate_backward d_damage d_faults step_loss_backward",
    "gradients": "gradients",
    "update": "clip_norm commit adamw",
    "pool": "sample_losses write_back",
}
PHASES = {kernel: phase for phase, kernels in _KERNELS.items() for kernel in kernels.split()}
"""Mapping from kernels to phases of a train step."""

HOST, GAPS, TRANSFER = "host", "gaps", "transfer"
"""Names of the phases outside kernels: the host's work, gaps between dispatches, and transfers."""

UNKNOWN = "unknown"
"""Name of the phase that contains the remaining, unexplained time."""

ATTRIBUTED = 0.9
"""Minimum share of the wall-clock time that parts must explain; below it, the report calls the profile incomplete."""


@dataclass(frozen=True)
class ProfilePart:
    """Part of a profile: a kernel, a part of the host's work, or the remaining time."""

    name: str
    phase: str
    count: int
    """Number of dispatches or calls per train step."""
    seconds: float


@dataclass(frozen=True)
class Profile:
    """Profile of one train step of all models together: seconds in total (`wall`) and per part."""

    engine: str
    how: str
    """Description of the clock with which the parts were measured."""
    wall: float
    parts: tuple[ProfilePart, ...]

    @property
    def kernels(self) -> tuple[ProfilePart, ...]:
        return tuple(part for part in self.parts if part.phase not in (HOST, GAPS, TRANSFER, UNKNOWN))

    @property
    def kernel_seconds(self) -> float:
        return sum(part.seconds for part in self.kernels)

    @property
    def share(self) -> float:
        """Share of the wall-clock time explained by the parts; it exceeds 1 if host and device worked in parallel."""
        return sum(part.seconds for part in self.parts if part.phase != UNKNOWN) / self.wall

    @property
    def dispatches(self) -> int:
        return sum(part.count for part in self.kernels)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as a dictionary for the results file, with times in milliseconds."""
        return {
            "engine": self.engine,
            "how": self.how,
            "wall_ms": 1e3 * self.wall,
            "attributed": self.share,
            "dispatches": self.dispatches,
            "parts": [
                {"name": part.name, "phase": part.phase, "count": part.count, "ms": 1e3 * part.seconds}
                for part in self.parts
            ],
        }


def profile(model: Model, rounds: int = 5) -> Profile:
    """Return the median, by total time, of `rounds` profiles. Training metrics are lost: close the model afterwards."""
    # A GPU is profiled by dispatches, the CPU engine by compiled phases. The reference engine is not profiled.
    how: Callable[[Any], Profile] = _profile_gpu if model.info.engine == "gpu" else _profile_cpu
    profiles = [how(model) for _ in range(rounds)]
    # Medians per part would mix several steps, so that their sum would not be the time of any step.
    wall = statistics.median_low(each.wall for each in profiles)
    return next(each for each in profiles if each.wall == wall)


def _profile_gpu(model: Any) -> Profile:
    from difflogic.gpu.timing import Timer

    # Each submit contains as many steps as in training, so that the cost of submitting is equal.
    timer = Timer(model.device, model.train_step, repeat=model.epochs_per_call())
    times = timer.measure()
    timer.close()
    kernels = [
        ProfilePart(name, PHASES.get(name, name), times.counts[name], seconds)
        for name, seconds in times.kernels.items()
    ]
    around = [ProfilePart("encode", HOST, 1, times.encode), ProfilePart("submit", HOST, 1, times.submit)]
    # The device may begin its work while the host is still submitting.
    waiting = max(0.0, times.wait - sum(part.seconds for part in kernels) - times.gaps)
    if times.timestamps:
        transfer = min(times.round_trip, waiting)
        waiting -= transfer
        around += [
            ProfilePart("between kernels", GAPS, timer.gap_count, times.gaps),
            ProfilePart("read back", TRANSFER, 1, transfer),
        ]
    around.append(ProfilePart("wait beyond the kernels", UNKNOWN, 1, waiting))
    how = "device timestamps" if times.timestamps else "host clock, each kernel submitted alone: no timestamp queries"
    return Profile("gpu", how, times.wall, (*kernels, *around))


def _profile_cpu(model: Any) -> Profile:
    from difflogic.cpu.model import time_phases

    begin = time.perf_counter()
    parts = [ProfilePart(name, PHASES.get(name, name), count, seconds) for name, count, seconds in time_phases(model)]
    wall = time.perf_counter() - begin
    rest = ProfilePart("the rest", UNKNOWN, 1, max(0.0, wall - sum(part.seconds for part in parts)))
    return Profile("cpu", "host clock, phase by phase", wall, (*parts, rest))


def bottleneck(profile: Profile, dispatch_s: float = 0.0, transfer_s: float = 0.0) -> str:
    """Describe the largest part of a step, for example `kernel (79% of the step), mainly gate_backward (61%)`.

    `dispatch_s` is the time of an empty dispatch that waits for the previous one, `transfer_s` that of copying metrics.
    """
    # A gap of `dispatch_s` precedes each dispatch; the profile includes it in the time of the kernel.
    gaps = min(profile.dispatches * dispatch_s, profile.kernel_seconds)
    seconds = {
        "host encode": sum(part.seconds for part in profile.parts if part.phase == HOST),
        "transfer": transfer_s,
        "dispatch gaps": gaps,
        "kernel": profile.kernel_seconds - gaps,
    }
    name = max(seconds, key=seconds.__getitem__)
    text = f"{name} ({seconds[name] / profile.wall:.0%} of the step)"
    if name != "kernel":
        return text
    longest = max(profile.kernels, key=lambda part: part.seconds)
    return f"{text}, mainly {longest.name} ({longest.seconds / profile.wall:.0%})"
