"""Launch configurations: workgroup sizes, chunks per workgroup, and storage of activations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

FUSED = ("gate_forward", "gate_backward", "hard_forward")
"""Kernels that compute a complete CA step, all levels in one dispatch."""
LINEAR_WG = 64
"""Workgroup size of all kernels other than fused steps; it hardly affects their speed."""


@dataclass(frozen=True)
class LaunchConfig:
    """Schedule of the fused steps (see FUSED), which affects their speed and memory, not their results."""

    workgroup_size: int
    """Number of invocations per workgroup of gate_backward, and of each fused step whose own setting is 0."""
    chunks_per_workgroup: int
    """Number of chunks per workgroup, `LANES` in the shaders; must divide the number of invocations."""
    split_chunks: bool = False
    """True if several workgroups share a chunk, and levels exchange values in workgroup memory."""
    store_activations: bool = True
    """True if the forward pass stores the value of every node; otherwise the backward pass recomputes the values."""
    forward_workgroup_size: int = 0
    hard_workgroup_size: int = 0
    checkpoint_every: int = 1
    """Number of steps between checkpointed states if activations are not stored: 3 stores states 0, 3 and 6 of 6 steps.

    States between them share buffers. Before the backward pass of step 2, steps 0 and 1 are recomputed from state 0.
    """
    quarters: int = 1
    """Number of quarters of a split chunk per workgroup, 1 or 2; with 2, both quarters use each loaded gate."""

    @property
    def memory(self) -> tuple[bool, int]:
        """Settings that determine which values are stored: `store_activations` and `checkpoint_every`."""
        return self.store_activations, self.checkpoint_every

    def with_memory(self, store_activations: bool, checkpoint_every: int = 1) -> LaunchConfig:
        """Return this schedule with the two settings of `memory` replaced."""
        return replace(self, store_activations=store_activations, checkpoint_every=checkpoint_every)

    @property
    def layout(self) -> tuple[int, bool, bool, int]:
        """Settings that determine the memory layout: chunks per workgroup, split chunks, and `memory`."""
        return self.chunks_per_workgroup, self.split_chunks, *self.memory

    @property
    def groups_per_tile(self) -> int:
        """Number of workgroups that share a tile."""
        return 4 // self.quarters if self.split_chunks else 1

    def workgroup_size_of(self, kernel: str) -> int:
        """Return the number of invocations per workgroup of a fused step."""
        own = {"gate_forward": self.forward_workgroup_size, "hard_forward": self.hard_workgroup_size}
        return own.get(kernel, 0) or self.workgroup_size

    def runs_as(self, other: LaunchConfig) -> bool:
        """Return whether every kernel runs identically under the schedule `other`."""
        alike = all(self.workgroup_size_of(kernel) == other.workgroup_size_of(kernel) for kernel in FUSED)
        return alike and self.layout == other.layout and self.quarters == other.quarters

    def described(self) -> str:
        """Return a description of the schedule for messages."""
        sizes = ", ".join(f"{kernel} {self.workgroup_size_of(kernel)}" for kernel in FUSED)
        return f"workgroups of {sizes} invocations, chunks per workgroup: {self.chunks}"

    @property
    def chunks(self) -> str:
        """Number of chunks per workgroup as text, such as `8`, or `1/4` for split chunks."""
        return f"1/{self.groups_per_tile}" if self.split_chunks else str(self.chunks_per_workgroup)

    def written(self) -> dict[str, int]:
        """Return a mapping from the settings' names in manifests, measurements and tuning caches to their values."""
        return {WRITTEN[name]: value for name, value in asdict(self).items()}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> LaunchConfig:
        """Return the configuration from the result of `written`. Raises ValueError or TypeError if it is not valid."""
        launch = cls(**{_READ.get(name, name): value for name, value in fields.items()})
        for name, number in asdict(launch).items():
            flag = name in ("store_activations", "split_chunks")
            if isinstance(number, bool) != flag or not isinstance(number, int) or not 0 <= number <= 1024:
                raise ValueError(f"expected a boolean or an integer up to 1024 for {WRITTEN[name]}, got {number!r}")
        if not launch.is_sound():
            raise ValueError(f"expected a valid launch configuration, got {launch}")
        return launch

    def is_sound(self) -> bool:
        """Return whether all settings are valid; workgroup sizes must be multiples of the number of chunks."""
        divides = self.chunks_per_workgroup > 0 and all(
            wg > 0 and wg % self.chunks_per_workgroup == 0 for wg in map(self.workgroup_size_of, FUSED)
        )
        split = self.chunks_per_workgroup == 1 and self.quarters in (1, 2) if self.split_chunks else self.quarters == 1
        return divides and self.checkpoint_every > 0 and split


WRITTEN = {
    "workgroup_size": "wg",
    "chunks_per_workgroup": "lanes",
    "split_chunks": "split",
    "store_activations": "keep",
    "forward_workgroup_size": "forward_wg",
    "hard_workgroup_size": "hard_wg",
    "checkpoint_every": "spacing",
    "quarters": "quarters",
}
"""Mapping from fields of LaunchConfig to their names in files."""
_READ = {written: name for name, written in WRITTEN.items()}

HARDWARE = (LaunchConfig(256, 1, split_chunks=True), LaunchConfig(256, 1), LaunchConfig(128, 1), LaunchConfig(64, 1))
"""Schedules for hardware GPUs, best first: with many invocations for few cells, there are enough workgroups to fill the
GPU. The second is for circuits whose levels exceed the workgroup memory, the others are for smaller devices."""
SOFTWARE = (LaunchConfig(8, 8), LaunchConfig(8, 1), LaunchConfig(32, 1), LaunchConfig(64, 1))
"""Schedules for software adapters, best first: one invocation per chunk needs no barrier and fills vector registers.
The others split long loops."""
