"""Every kernel: its bindings in order and how it may be varied. A test holds the WGSL and the twins to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Access = Literal["uniform", "read", "read_write"]


@dataclass(frozen=True)
class Binding:
    """One `@binding`, its number being its place in the list."""

    name: str
    access: Access


def uniform(name: str) -> Binding:
    """A small block that every invocation reads alike."""
    return Binding(name, "uniform")


def read(name: str) -> Binding:
    """A storage buffer that the kernel only reads."""
    return Binding(name, "read")


def read_write(name: str) -> Binding:
    """A storage buffer that the kernel writes, and may read."""
    return Binding(name, "read_write")


@dataclass(frozen=True)
class KernelSpec:
    """`shaders/<name>.wgsl`, its bindings, its `override` constants and its workgroup memory."""

    name: str
    bindings: tuple[Binding, ...]
    overrides: tuple[str, ...] = ("WG",)
    workgroup_bytes_per_invocation: int = 0

    @property
    def storage_buffers(self) -> int:
        return sum(binding.access != "uniform" for binding in self.bindings)


_SPECS = (
    KernelSpec("coefficients", (uniform("shape"), read("logits"), read_write("coefficients"), read_write("gate_ids"))),
    KernelSpec("harden", (uniform("shape"), read("control"), read("logits"), read_write("coefficients"))),
    KernelSpec("seed_grid", (uniform("shape"), read("control"), read_write("state"))),
    KernelSpec("seed_boards", (uniform("shape"), read("control"), read_write("state"))),
    KernelSpec("same_start", (uniform("shape"), read("same"), read_write("state"))),
    KernelSpec(
        "draw_pool",
        (uniform("shape"), read("control"), read("pool"), read_write("state"), read_write("places")),
    ),
    KernelSpec("rule_target", (uniform("shape"), read("state"), read("rule"), read_write("targets"))),
    KernelSpec("draw_corners", (uniform("shape"), read("control"), read_write("corners"))),
    KernelSpec("damage", (uniform("shape"), uniform("mark"), read("corners"), read_write("state"))),
    KernelSpec("fire_mask", (uniform("shape"), read("control"), read_write("masks"))),
    KernelSpec(
        "gate_forward",
        (
            uniform("shape"),
            uniform("at"),
            read("wires"),
            read("coefficients"),
            read("masks"),
            read("state"),
            read_write("next_state"),
            read_write("values"),
            read_write("kept"),
        ),
        overrides=("WG", "LANES", "TREES", "KEEP", "HALF"),
    ),
    KernelSpec(
        "judge",
        (
            uniform("shape"),
            uniform("mark"),
            read("state"),
            read("targets"),
            read_write("d_judged"),
            read_write("loss_partials"),
        ),
    ),
    KernelSpec(
        "loss",
        (
            uniform("shape"),
            read("state"),
            read("targets"),
            read_write("d_rows"),
            read_write("loss_partials"),
            read_write("control"),
        ),
    ),
    KernelSpec(
        "gate_backward",
        (
            uniform("shape"),
            uniform("at"),
            read("edges"),
            read("coefficients"),
            read("masks"),
            read("kept"),
            read("d_next"),
            read_write("values"),
            read_write("d_rows"),
            read_write("partials"),
        ),
        overrides=("WG", "LANES", "TREES", "KEEP", "HALF"),
        workgroup_bytes_per_invocation=16,
    ),
    KernelSpec("d_damage", (uniform("shape"), uniform("mark"), read("corners"), read_write("d_rows"))),
    KernelSpec("d_judge", (uniform("shape"), uniform("mark"), read("d_judged"), read_write("d_rows"))),
    KernelSpec(
        "gradients",
        (
            uniform("shape"),
            read("partials"),
            read("place_of"),
            read("logits"),
            read_write("gradients"),
            read_write("control"),
        ),
        workgroup_bytes_per_invocation=16,
    ),
    KernelSpec(
        "commit",
        (uniform("shape"), read("loss_partials"), read_write("control"), read_write("history")),
        overrides=(),
        workgroup_bytes_per_invocation=4,
    ),
    KernelSpec(
        "adamw",
        (
            uniform("shape"),
            read("control"),
            read("gradients"),
            read_write("logits"),
            read_write("mu"),
            read_write("nu"),
            read_write("coefficients"),
            read_write("gate_ids"),
        ),
    ),
    KernelSpec(
        "sample_losses",
        (uniform("shape"), read("state"), read("targets"), read_write("sample_losses")),
        overrides=(),
        workgroup_bytes_per_invocation=4,
    ),
    KernelSpec(
        "write_back",
        (
            uniform("shape"),
            read("control"),
            read("state"),
            read("fresh"),
            read("sample_losses"),
            read("places"),
            read_write("pool"),
        ),
    ),
    KernelSpec(
        "pack",
        (
            uniform("shape"),
            uniform("hard_shape"),
            read("state"),
            read("targets"),
            read_write("words"),
            read_write("hard_targets"),
            read_write("counts"),
        ),
    ),
    KernelSpec("hard_damage", (uniform("shape"), uniform("mark"), read("corners"), read_write("words"))),
    KernelSpec(
        "hard_forward",
        (
            uniform("shape"),
            uniform("at"),
            read("wires"),
            read("gate_ids"),
            read("masks"),
            read("words"),
            read_write("next_words"),
            read_write("hard_nodes"),
        ),
        overrides=("WG", "LANES", "TREES"),
    ),
    KernelSpec(
        "hard_loss",
        (uniform("shape"), read("words"), read("hard_targets"), read_write("counts")),
    ),
)

KERNELS = {spec.name: spec for spec in _SPECS}

TILED = frozenset(spec.name for spec in _SPECS if "LANES" in spec.overrides)
"""The fused steps: their workgroups go through the tiles of all models; elsewhere `workgroup_id.y` is the model."""
