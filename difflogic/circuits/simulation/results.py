"""Result files of a simulation: the last state, or several states, as RLE, PNG, GIF or npy."""

import io

import numpy as np

from difflogic.circuits import rle
from difflogic.circuits.simulation import pictures
from difflogic.core.bits import Bits, Planes, unpack_planes
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import UsageError
from difflogic.system.files import Output

FORMATS = (".rle", ".png", ".gif", ".npy")
MOVING = (".gif", ".npy")
"""File formats that contain several states."""
GIF_FRAMES = 60
"""Default approximate number of frames in a GIF."""
PNG_ROWS = 1024
"""Default approximate number of rows in the PNG of a one-dimensional automaton, one per recorded step."""


class Recording:
    """Output file of a simulation. The constructor raises UsageError for an unsuitable format."""

    def __init__(self, out: Output, spec: SimulationSpec, steps: int, every: int | None) -> None:
        self.out, self.spec, self._steps = out, spec, steps
        self.kind = out.path.suffix.lower()
        if self.kind not in FORMATS:
            raise UsageError(f"{out} must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, which selects the format.")
        self._is_history = spec.height == 1 and self.kind == ".png"
        if every is not None and self.kind not in MOVING and not self._is_history:
            raise UsageError(f"--every needs a file of several states, .gif or .npy, got {self.kind}.")
        frames = PNG_ROWS if self._is_history else GIF_FRAMES
        self.every = every or (max(1, steps // frames) if self.kind == ".gif" or self._is_history else 0)
        # Hexagons are at least 4 pixels wide.
        self._side = pictures.GIF_SIDE // (4 if spec.netlist.neighbourhood == "hex" else 1)
        self._pictures: list[pictures.Picture] = []
        self._grids: list[Bits] = []

    @property
    def notes(self) -> list[str]:
        """Sentences on the details that the file omits, such as channels."""
        spec, notes = self.spec, []
        longest = max(spec.height, spec.width)
        if self.kind == ".gif" and longest > self._side:
            side = -(-longest // self._side)
            notes.append(f"a pixel of the GIF is the mean of {side}x{side} cells")
        if self.kind == ".rle" and self._rle_channels() < spec.channels:
            notes.append(f"the RLE contains {self._rle_channels()} of {spec.channels} channels, unlike .npy")
        return notes

    @property
    def held_bytes(self) -> int:
        """Number of bytes of memory needed to write the file: states are unpacked to a byte per channel of a cell."""
        spec = self.spec
        colours = 1 if spec.netlist.visible == 1 else 3
        # Measured: arrays are in memory three times, or four times if several states are joined. An RLE has at most one
        # word per cell.
        of_npy = 4 * spec.channels * (self._steps // self.every + 2) if self.every else 3 * spec.channels
        of_rle = 32 + 13 * self._rle_channels()
        per_cell = {".npy": of_npy, ".rle": of_rle, ".gif": 14, ".png": 2 * colours}[self.kind]
        return per_cell * spec.height * spec.width

    def add(self, planes: Planes) -> None:
        """Add a state if the file contains several states; do nothing for other files."""
        if self.kind == ".gif" or self._is_history:
            most = (self._side, self._side) if self.kind == ".gif" else None
            netlist = self.spec.netlist
            picture = pictures.picture(planes, self.spec.width, netlist.visible, most, netlist.palette)
            self._pictures.append(picture)
        elif self.kind == ".npy":
            self._grids.append(unpack_planes(planes, self.spec.width))

    def write(self, planes: Planes) -> None:
        """Write the file, with `planes` as the last state. Raises DifflogicError."""
        self.out.write(self._bytes(planes))

    def _bytes(self, planes: Planes) -> bytes:
        width, visible = self.spec.width, self.spec.netlist.visible
        if self._is_history:
            return pictures.history(self._pictures)
        if self.kind == ".png":
            return pictures.png(planes, width, visible, self.spec.netlist.palette)
        if self.kind == ".gif":
            return pictures.gif(self._pictures, self.spec.netlist.neighbourhood)
        if self.kind == ".rle":
            grid = unpack_planes(planes[:, : self._rle_channels()], width)
            rule, remark = rle.rule_of(self.spec.netlist, *grid.shape[:2])
            fires = " Here only some cells are updated in each step, in Golly all." if self.spec.asynchronous else ""
            return rle.text(grid, rule, f"{remark}{fires}".strip()).encode("ascii")
        buffer = io.BytesIO()
        np.save(buffer, np.stack(self._grids) if self._grids else unpack_planes(planes, width))
        return buffer.getvalue()

    def _rle_channels(self) -> int:
        """Return the number of channels in an RLE file: all if they fit, otherwise as many visible ones as fit."""
        channels = self.spec.channels
        return channels if channels <= rle.MOST_CHANNELS else min(self.spec.netlist.visible, rle.MOST_CHANNELS)
