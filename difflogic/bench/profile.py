"""One train step, taken apart: by kernel, by phase, and what the host does around it."""

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
"""The phase of a train step that each kernel belongs to."""

HOST, GAPS, TRANSFER = "host", "gaps", "transfer"
"""The phases of what surrounds the kernels."""

UNKNOWN = "unknown"
"""The phase of what no kernel and no part of the host explains."""

ATTRIBUTED = 0.9
"""Share of the wall-clock time that should be explained; where it is not, that is said."""


@dataclass(frozen=True)
class ProfilePart:
    """A kernel, something the host does, or what is left."""

    name: str
    phase: str
    count: int
    """Dispatches, or calls."""
    seconds: float


@dataclass(frozen=True)
class Profile:
    """Seconds of one train step of all models together, in the mean over a few."""

    engine: str
    how: str
    """Which clock measured it, in words."""
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
        """How much of the wall the parts explain; over 1 where host and device worked side by side."""
        return sum(part.seconds for part in self.parts if part.phase != UNKNOWN) / self.wall

    @property
    def dispatches(self) -> int:
        return sum(part.count for part in self.kernels)

    @property
    def host_seconds(self) -> float:
        return sum(part.seconds for part in self.parts if part.phase == HOST)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times in milliseconds."""
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
    """Profile a model that has trained at least once. It trains on, but its metrics are lost: close it after."""
    # Each engine's model is taken apart by what it alone has: dispatches, or compiled phases. Nobody asks what the
    # reference spends its time on.
    how: Callable[[Any], Profile] = _profile_gpu if model.info.engine == "gpu" else _profile_cpu
    return _middle([how(model) for _ in range(rounds)])


def _middle(profiles: list[Profile]) -> Profile:
    """The profile whose wall is the median: one that happened, so that its parts belong together."""
    # A median over the parts one by one would mix several steps, and they would not add up to any of them.
    wall = statistics.median_low(each.wall for each in profiles)
    return next(each for each in profiles if each.wall == wall)


def _profile_gpu(model: Any) -> Profile:
    from difflogic.gpu.timing import Timer

    # As many steps to a submit as training has, or the cost of submitting would be that of another program.
    timer = Timer(model.device, model.train_step, repeat=model.epochs_per_call())
    times = timer.measure()
    timer.close()
    kernels = [
        ProfilePart(name, PHASES.get(name, name), times.counts[name], seconds)
        for name, seconds in times.kernels.items()
    ]
    around = [ProfilePart("encode", HOST, 1, times.encode), ProfilePart("submit", HOST, 1, times.submit)]
    # the device may begin while the host is still submitting
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
    """What takes most of a train step: `kernel (79 % of the step), most of all gate_backward (61 %)`.

    `dispatch_s`: of an empty dispatch that waits for the one before; `transfer_s`: of reading the metrics back.
    """
    # Every dispatch has such a gap before it, which is measured as part of its kernel.
    gaps = min(profile.dispatches * dispatch_s, profile.kernel_seconds)
    seconds = {
        "host encode": profile.host_seconds,
        "transfer": transfer_s,
        "dispatch gaps": gaps,
        "kernel": profile.kernel_seconds - gaps,
    }
    name = max(seconds, key=seconds.__getitem__)
    text = f"{name} ({seconds[name] / profile.wall:.0%} of the step)"
    if name != "kernel":
        return text
    longest = max(profile.kernels, key=lambda part: part.seconds)
    return f"{text}, most of all {longest.name} ({longest.seconds / profile.wall:.0%})"
