"""Pack values into uniform blocks by field name, with the offsets that the shaders' structs define."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.engine.events import Hardening
from difflogic.engine.shape import Hyper, Shape
from difflogic.errors import KernelError
from difflogic.gpu.plan import HISTORY, Plan
from difflogic.gpu.shaders import Sizes, load_source

MAX_LEVELS = 256
"""Length of the table of levels in `shaders/common/shape.wgsl`, and maximum number of levels."""
ALIGNMENT = 256
"""Alignment in bytes of uniform binding offsets that every device supports."""

_FIELD = re.compile(r"(\w+):(?:array<)?(?:vec([24])<)?([uf])32>?(?:,(\d+)>)?(?:,|$)")
"""Pattern of a WGSL struct field, without blanks: a number, a vector, or an array of vectors."""


@dataclass(frozen=True)
class UniformStruct:
    """Uniform struct of a shader, packed by field name; only the shader defines the order and offsets of its fields."""

    name: str
    fields: np.dtype[np.void]
    """NumPy record type with the same fields and offsets; its size is a multiple of 16 bytes."""

    @classmethod
    def parse(cls, text: str, name: str) -> UniformStruct:
        """Parse the struct `name` in the WGSL source `text`. Raises KernelError if it is missing or unsupported."""
        found = re.search(rf"\bstruct {name} \{{(.*?)\}}", re.sub(r"//.*", "", text), re.DOTALL)
        if found is None:
            raise KernelError(f"Expected a struct {name} in the shader, found none.")
        body = re.sub(r"\s", "", found.group(1))
        if left := _FIELD.sub("", body):
            raise KernelError(f"The struct {name} has fields of an unsupported type: {left}.")
        # WGSL aligns a vec2 to 8 bytes, a vec4 and an array of them to 16, and rounds the struct up to 16.
        names, formats, offsets, end = [], [], [], 0
        for field, lanes, kind, length in _FIELD.findall(body):
            align = 4 * int(lanes or 1)
            names.append(field)
            formats.append(np.dtype((f"<{kind}4", tuple(int(each) for each in (length, lanes) if each))))
            offsets.append(-(-end // align) * align)
            end = offsets[-1] + formats[-1].itemsize
        record: Any = {"names": names, "formats": formats, "offsets": offsets, "itemsize": -(-end // 16) * 16}
        return cls(name, np.dtype(record))

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """Pack a mapping from field names to values. Raises KernelError if a name or value is not valid."""
        if wrong := set(self.fields.names or ()).symmetric_difference(values):
            raise KernelError(f"The struct {self.name} has missing or unknown fields: {', '.join(sorted(wrong))}.")
        record = np.zeros((), self.fields)
        for name, value in values.items():
            given, wanted = np.asarray(value), self.fields[name]
            if given.shape != wanted.shape or not _holds(wanted.base, given):
                raise KernelError(f"Expected {wanted} for the field {name} of {self.name}, got {value!r}.")
            record[name] = given
        return record.tobytes()

    def whole_numbers(self, values: Mapping[str, Any]) -> Sizes:
        """Return the names and values of the fields in `values` that are single unsigned integers."""
        names = [name for name in self.fields.names or () if self.fields[name] == np.dtype("<u4")]
        return tuple((name, int(values[name])) for name in names)

    @property
    def stride(self) -> int:
        """Number of bytes from the start of a block to the start of the next block."""
        return -(-self.fields.itemsize // ALIGNMENT) * ALIGNMENT

    def pack_all(self, rows: Iterable[Mapping[str, Any]]) -> bytes:
        """Pack one block per row, `stride` bytes apart."""
        return b"".join(self.pack(row).ljust(self.stride, b"\0") for row in rows)


def _holds(wanted: np.dtype[Any], given: npt.NDArray[Any]) -> bool:
    """Return whether a field of type `wanted` can represent the values in `given`."""
    if wanted.kind == "f":
        return given.dtype.kind in "iuf"
    return given.dtype.kind in "biu" and int(given.min()) >= 0 and int(given.max()) < 1 << 32


@cache
def uniform_struct(source: str, name: str) -> UniformStruct:
    """Return the struct `name` of the file `shaders/<source>.wgsl`."""
    return UniformStruct.parse(load_source(source).text, name)


def shape_values(
    plan: Plan, hyper: Hyper, fire_rate: float, hardening: Hardening, hard: bool = False
) -> dict[str, Any]:
    """Return the field values of the uniform `Shape` for the soft batch or, if `hard`, for packed hard states."""
    shape, layout, wiring = plan.shape, plan.layout, plan.wirings[0]
    batch = plan.groups if hard else shape.batch
    level_table = np.zeros((MAX_LEVELS, 4), dtype=np.uint32)
    for row, level in zip(level_table, layout.levels, strict=False):
        row[:] = (level.first_instance, level.count, level.first_gate, level.replicas)
    # Fields are named, so that they may move within the struct, and `pack` reports misspelt names.
    of_shape = "height width channels steps periodic loss_channels targets"
    of_plan = "outputs nodes slots blocks chunks_per_block probe_groups models corner_samples grid_words"
    of_plan += " adjoints damage_side"
    return {
        **{name: getattr(shape, name) for name in of_shape.split()},
        **{name: getattr(plan, name) for name in of_plan.split()},
        **{name: getattr(layout, name) for name in ("patch_nodes", "instances", "gates")},
        **{name: getattr(wiring, name) for name in ("tree_levels", "inner", "near_odd")},
        **{name: value for name, value in asdict(hyper).items() if name != "clip_by"},  # clip_by selects kernels
        **{f"harden_{name}": value for name, value in hardening._asdict().items()},
        "batch": batch,
        "cells": batch * shape.cells_per_grid,
        "chunks": plan.hard_chunks if hard else plan.chunks,
        "grid": shape.cells_per_grid,
        "levels": len(layout.levels),
        "level_table": level_table,
        "fire_rate": fire_rate,
        "asynchronous": fire_rate < 1,
        "judged": len(shape.judged_steps),
        "damages": len(shape.damage_steps),
        "flip": shape.faults.flip,
        "stuck": shape.faults.stuck,
        "stuck_gates": shape.faults.gates,
        "stuck_value": shape.faults.value,
        "pool": plan.batch_source.pool,
        "dataset": plan.batch_source.samples,
        "given": plan.batch_source.given,
        "resets": plan.batch_source.resets,
        "history": HISTORY,
    }


def event_indices(shape: Shape) -> list[dict[str, int]]:
    """Return the fields of `EventIndex` per state: its step, and its indices in `damage_steps` and `judged_steps`."""
    lists = {"damage": shape.damage_steps, "judged": shape.judged_steps}
    return [
        {name: steps.index(step) if step in steps else 0 for name, steps in lists.items()} | {"step": step}
        for step in range(shape.steps + 1)
    ]
