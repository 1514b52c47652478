"""Node values in 16 bits, for the backward pass. Twin of `shaders/common/half.wgsl`.

A gradient is often a small difference of large sums over cells whose values are nearly the same, or all but 0 and 1;
multiples of one step would drown it. So 16 cells of a node share a *range*, their least value rounded down and their
largest rounded up, both to multiples of 1/65536; a value's *code* m counts from the end that it is nearer to, in steps
that grow with the distance:

    value = least + width * 2*(m/65535)**2    or    largest - width * 2*((65535 - m)/65535)**2

which is worked out in integers of 1/2**31, so that a value is the same wherever it is decoded.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic.engine.shape import Array

Codes = npt.NDArray[np.uint16]
Units = npt.NDArray[np.uint32]

CHUNK = 16
"""Cells that share a range."""


def encode(values: Array) -> tuple[Codes, Units]:
    """`values [N, cells]` as codes, and ranges `[N, chunks]`: the least, and in the high half the largest less 1."""
    count = values.shape[-1]
    padded = np.pad(values.clip(0, 1), ((0, 0), (0, -count % CHUNK)), mode="edge")
    units = padded.reshape(len(values), -1, CHUNK) * values.dtype.type(65536)
    least = np.floor(units.min(-1, keepdims=True)).clip(max=65535)
    largest = np.maximum(np.ceil(units.max(-1, keepdims=True)), least + 1)
    up, down = units - least, largest - units
    steps = np.floor(
        np.sqrt(np.minimum(up, down) * (values.dtype.type(0.5) / (largest - least))) * 65535 + values.dtype.type(0.5)
    )
    codes = np.where(up <= down, steps, 65535 - steps).astype(np.uint16)
    ranges = least.astype(np.uint32) | (largest - 1).astype(np.uint32) << np.uint32(16)
    return codes.reshape(padded.shape)[:, :count], ranges[..., 0]


def decode(codes: Codes, ranges: Units) -> npt.NDArray[np.float32]:
    """The values `[N, cells]` of what `encode` made."""
    each = ranges.repeat(CHUNK, axis=-1)[:, : codes.shape[-1]]
    least, largest = each & np.uint32(0xFFFF), (each >> np.uint32(16)) + np.uint32(1)
    steps = np.minimum(codes, 65535 - codes).astype(np.uint32)
    square = steps * steps
    # In units of 2^-31 of the range's width: steps^2 * 2 / 65535^2 is steps^2 * (1 + 2^-15) / 2^31, to within a unit.
    square += square >> np.uint32(15)  # 2**31 is a little more than 65535**2 / 2
    width = largest - least
    # width * square / 2^16 in two parts, as a width of up to 17 bits times a square of 30 has no place in 32.
    way = width * (square >> np.uint32(16)) + (width * (square & np.uint32(0xFFFF)) >> np.uint32(16))
    least, largest = least << np.uint32(15), largest << np.uint32(15)
    values: Units = np.where(codes == steps, least + way, largest - way)
    return values.astype(np.float32) * np.float32(2**-31)
