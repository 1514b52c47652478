"""What bounds a train step, in one line."""

from __future__ import annotations

from dataclasses import dataclass

from difflogic.bench.profile import Profile


@dataclass(frozen=True)
class Limits:
    """Seconds of one train step that each suspect takes; the host's may be hidden behind the device's."""

    host: float
    """Encoding and submitting."""
    transfer: float
    """Reading the metrics back."""
    gaps: float
    """As many dispatches as the step has, each empty and waiting for the one before."""
    kernels: float
    """The kernels' own work."""

    @classmethod
    def of(cls, profile: Profile, dispatch_s: float = 0.0, transfer_s: float = 0.0) -> Limits:
        gaps = min(profile.dispatches * dispatch_s, profile.kernel_seconds)
        return cls(profile.host_seconds, transfer_s, gaps, profile.kernel_seconds - gaps)

    def line(self, profile: Profile) -> str:
        """`kernels (79 % of the step), most of all gate_backward (61 %)`."""
        names = {
            "host encode": self.host,
            "transfer": self.transfer,
            "dispatch gaps": self.gaps,
            "kernel": self.kernels,
        }
        name = max(names, key=names.__getitem__)
        text = f"{name} ({names[name] / profile.wall:.0%} of the step)"
        if name != "kernel":
            return text
        longest = max(profile.kernels, key=lambda part: part.seconds)
        return f"{text}, most of all {longest.name} ({longest.seconds / profile.wall:.0%})"
