"""Tasks defined by samples: initial grids, their targets after some CA steps, and which values are compared.

Arrays in a file, recordings and samples drawn by a program all become a `Dataset`. A run stores its samples in
`data.npz`, and its configuration contains their hash and sizes.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.core.bits import IGNORED, Bits
from difflogic.core.neighbourhoods import contradiction
from difflogic.errors import DataError
from difflogic.system.array_files import read_arrays
from difflogic.system.brief import brief

NAME = "data.npz"
ARRAYS = ("x", "y", "mask", "steps", "frames")
MOST_STEPS = 1 << 16
"""Maximum number of steps in a range, since a few bytes of a file could define a huge one."""
MOST_CELLS = 1 << 21
"""Maximum number of cells whose neighbourhoods are compared; sorting this number takes a second."""
Codes = npt.NDArray[np.int8]
"""Array of target values: 0, 1, or -1 for a value that is not compared."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples of a custom task: initial states, their targets after some steps, and which values are compared.

    Use `of` and `of_frames` to create a dataset from arrays, which they check.

        >>> x = np.random.default_rng(0).integers(0, 2, (8, 6, 6))
        >>> data = difflogic.Dataset.of(x, 1 - x)  # y after one step
        >>> data.x.shape
        (8, 6, 6, 1)
        >>> difflogic.Dataset.of(x, x, steps=(8, 12)).steps  # y after step 8, and still after step 12
        (8, 12)
    """

    x: Bits
    """Initial values of the first channels, 0 or 1, `[N, H, W, C_in]`."""
    y: Codes
    """Targets of the first channels, `[N, J, H, W, C_out]`: J is the number of `steps`, or 1 for a shared target."""
    steps: tuple[int, ...] = (1,)
    """CA steps after which states are compared, ascending."""

    __repr__ = brief

    @classmethod
    def of(
        cls, x: npt.ArrayLike, y: npt.ArrayLike, steps: int | Sequence[int] = 1, mask: npt.ArrayLike | None = None
    ) -> Dataset:
        """Return samples from arrays of 0 and 1.

        Args:
            x: Initial states `[N, H, W, C_in]`. With one channel, its axis may be left out, here and in `y`.
            y: Targets `[N, H, W, C_out]`, or `[N, J, H, W, C_out]` for each of the J compared steps.
            steps: The step, or steps, after which `y` is compared.
            mask: 1 where a value counts; shaped like `y`, with or without channels, or `[H, W]`. None: everywhere.

        Returns:
            The samples.

        Raises:
            DataError: The shapes of the arrays do not match, or a value is neither 0 nor 1.
        """
        starts, targets = as_bits("x", x), as_bits("y", y)
        if starts.ndim == 3:
            starts, targets = starts[..., None], targets[..., None]
        compared = (steps,) if isinstance(steps, int) else tuple(int(step) for step in steps)
        if starts.ndim != 4 or not starts.size:
            raise DataError(f"x must be samples [N, H, W, C], got {list(np.shape(x))}.")
        if targets.ndim == 4:
            targets = targets[:, None]
        if not compared or compared[0] < 1 or any(a >= b for a, b in itertools.pairwise(compared)):
            raise DataError(f"steps must be ascending numbers of at least 1, got {list(compared)}.")
        grids = (len(starts), *starts.shape[1:3])
        fits = targets.ndim == 5 and (len(targets), *targets.shape[2:4]) == grids
        if not fits or targets.shape[1] not in (1, len(compared)):
            raise DataError(
                f"y must have shape [N, H, W, C] or [N, {len(compared)}, H, W, C], with {list(grids)} for N, H and W "
                f"as in x, got {list(np.shape(y))}."
            )
        codes = targets.astype(np.int8)
        if mask is not None:
            codes[~_counted(mask, targets.shape)] = -1
        if not (codes >= 0).any():
            raise DataError("mask is 0 everywhere: it must be 1 where a value counts.")
        return cls(np.ascontiguousarray(starts), np.ascontiguousarray(codes), compared)

    @classmethod
    def of_frames(cls, frames: npt.ArrayLike, mask: npt.ArrayLike | None = None) -> Dataset:
        """Return one sample per recording: the first frame is its initial state, and all later frames are its targets.

        Args:
            frames: `[N, T+1, H, W, C]`, 0 and 1.
            mask: 1 where a value counts, as for `of`.

        Returns:
            The samples.

        Raises:
            DataError: The shapes of the arrays do not match, or a value is neither 0 nor 1.
        """
        states = as_bits("frames", frames)
        if states.ndim == 4:
            states = states[..., None]
        if states.ndim != 5 or states.shape[1] < 2:
            raise DataError(
                f"frames must be recordings [N, T+1, H, W, C] of at least 2 frames, got {list(states.shape)}."
            )
        return cls.of(states[:, 0], states[:, 1:], range(1, states.shape[1]), mask)

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the samples and steps, independent of the format of their file."""
        digest = hashlib.sha256(repr((self.x.shape, self.y.shape, self.steps)).encode())
        for bits in (self.x, self.y > 0, self.y >= 0):
            digest.update(np.packbits(bits).tobytes())
        return digest.hexdigest()

    def split(self, held_out: float) -> tuple[Dataset, Dataset]:
        """Return training and held-out samples, the same for all seeds; if `held_out` is 0, both are all samples."""
        return _split(self, held_out_samples(len(self), held_out))

    def only(self, samples: npt.NDArray[np.integer[Any]]) -> Dataset:
        """Return a dataset with only the samples at these indices."""
        return Dataset(self.x[samples], self.y[samples], self.steps)

    @property
    def targets(self) -> npt.NDArray[np.float32]:
        """Targets in the layout of engines, `[J, N, H, W, C_out]`; IGNORED replaces values that do not count."""
        return np.where(self.y < 0, np.float32(IGNORED), self.y).swapaxes(0, 1)

    def single_steps(self) -> Dataset | None:
        """Return the known transitions as one-step samples, or None if the targets lack step 1 or a channel."""
        if self.x.shape[-1] != self.y.shape[-1] or self.steps[0] != 1:
            return None
        frames = self.y.shape[1]
        if frames < self.steps[-1] or (self.y < 0).any():  # some steps have no target, or some values are masked
            return Dataset(self.x, self.y[:, :1])
        begun = np.concatenate([self.x[:, None], self.y[:, :-1].astype(np.uint8)], axis=1)
        shape = (len(self) * frames, 1, *self.x.shape[1:])
        return Dataset(begun.reshape(shape)[:, 0], self.y.reshape(shape))

    def contradiction(self, periodic: bool, neighbourhood: str = "moore") -> str:
        """Describe equal neighbourhoods that have different next values in the first samples; "" if there are none."""
        if self.steps[0] > 1:
            return ""
        shown = max(2, MOST_CELLS // math.prod(self.x.shape[1:3]))
        return contradiction(self.x[:shown], self.y[:shown, 0], periodic, neighbourhood)

    def fields(self) -> dict[str, dict[str, Any]]:
        """Return the configuration fields that describe these samples, by section."""
        height, width, channels = self.x.shape[1:]
        steps = [] if len(self.steps) == 1 else list(self.steps)
        grid = {"target": "data", "height": height, "width": width, "steps": self.steps[-1]}
        sizes = {"samples": len(self), "channels": channels, "targets": self.y.shape[1]}
        return {
            "task": {**grid, "loss_steps": steps, "loss_channels": self.y.shape[-1]},
            "data": {"sha256": self.sha256, **sizes},
        }

    def check(self, config: Config, subject: str = "The samples") -> None:
        """Raise DataError unless the configuration has the hash of these samples; `subject` begins the message."""
        if self.sha256 != config.data.sha256:
            raise DataError(f"{subject} are not those of the configuration: their SHA-256 is not data.sha256.")

    def encode(self) -> bytes:
        """Return the samples as the contents of an `.npz` file, which `load` reads."""
        file = io.BytesIO()
        arrays: dict[str, Any] = {"x": self.x, "y": (self.y > 0).astype(np.uint8), "steps": np.array(self.steps)}
        if (self.y < 0).any():
            arrays["mask"] = (self.y >= 0).astype(np.uint8)
        np.savez_compressed(file, **arrays)
        return file.getvalue()


def held_out_samples(samples: int, share: float) -> int:
    """Return the number of `samples` to hold out: 0 for a share of 0, otherwise at least one, at most all but one."""
    return min(max(1, round(share * samples)), samples - 1) if share else 0


@lru_cache(maxsize=1)
def _split(samples: Dataset, count: int) -> tuple[Dataset, Dataset]:
    # Cached, since all models of a population use the same parts.
    if not count:
        return samples, samples
    key = np.frombuffer(bytes.fromhex(samples.sha256[:16]), dtype=">u4").astype(np.uint32)
    order = prng.permutation(key, len(samples))
    return samples.only(order[count:]), samples.only(order[:count])


def as_bits(name: str, values: npt.ArrayLike) -> Bits:
    """Convert an array of 0 and 1 to uint8. Raises DataError with `name` and the index of the first other value."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} must be one array of 0 and 1, got values of type {array.dtype}.")
    wrong = (array != 0) & (array != 1)  # NaN too
    if wrong.any():
        place = np.argwhere(wrong)[0].tolist()
        raise DataError(f"{name} must be 0 or 1 everywhere, got {array[tuple(place)]} at {place}.")
    return array.astype(np.uint8)


def _counted(mask: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Broadcast a mask, which may lack axes, to `shape`, `[N, J, H, W, C]`. Raises DataError."""
    counted = as_bits("mask", mask).astype(bool)
    samples, _, *cells, channels = shape
    # Axes that a mask lacks are inserted with length 1.
    for own, axes in (
        (shape, ()),
        ((samples, *cells, channels), (1,)),
        (shape[:-1], (4,)),
        ((samples, *cells), (1, 4)),
        (tuple(cells), (0, 1, 4)),
    ):
        if counted.shape == own:
            return np.broadcast_to(np.expand_dims(counted, axes), shape)
    raise DataError(
        f"mask must have the shape of the grid, {cells}, or of y, {list(shape)}, with or without its steps and "
        f"channels, got {list(counted.shape)}."
    )


def of_run(config: Config, folder: Path) -> Dataset | None:
    """Return the samples in a run's folder, or None if the run's task has none. Raises DataError."""
    if config.task.target != "data":
        return None
    samples = load(folder / NAME)
    samples.check(config, f"The samples in {folder / NAME}")
    return samples


def load(path: Path | IO[bytes]) -> Dataset:
    """Read samples from an `.npz` file or a folder of `.npy` files: x and y, or frames; optionally mask and steps.

    Raises DataError, or LimitError if the arrays would not fit into this machine's memory.
    """
    arrays = read_arrays(path, partial(_check_names, path))
    if "frames" in arrays:
        if "steps" in arrays:
            raise DataError(f"{path} has frames, which are one step apart: omit steps.")
        return Dataset.of_frames(arrays["frames"], arrays.get("mask"))
    for name in ("x", "y"):
        if name not in arrays:
            raise DataError(f"{path} has no {name}: expected x and y, or frames.")
    return Dataset.of(arrays["x"], arrays["y"], _steps(arrays), arrays.get("mask"))


def _check_names(path: Path | IO[bytes], names: Collection[str]) -> None:
    if set(names) - set(ARRAYS) or ("frames" in names) == bool({"x", "y"} & set(names)):
        raise DataError(
            f"{path} must contain the arrays x and y, or frames, and optionally mask and steps, got "
            f"{', '.join(sorted(names)) or 'no arrays'}."
        )


def _steps(arrays: Mapping[str, npt.NDArray[Any]]) -> list[int]:
    """Return the CA steps in a file's arrays: one step, one per target, or all steps of a range; default: step 1."""
    steps = arrays.get("steps", np.array(1))
    if steps.dtype.kind not in "iu" or steps.ndim > 1 or not steps.size:
        raise DataError(
            f"steps must be an integer or a list of integers, got {steps.dtype} of shape {list(steps.shape)}."
        )
    numbers: list[int] = steps.reshape(-1).tolist()
    targets = arrays["y"].shape[1] if arrays["y"].ndim == arrays["x"].ndim + 1 else 1
    # Two numbers are ambiguous: 5 and 20 are two steps if there are two targets, otherwise all steps 5 to 20.
    if len(numbers) == 2 and targets != 2 and numbers[0] < numbers[1]:
        if numbers[1] - numbers[0] >= MOST_STEPS:
            raise DataError(f"steps must be a range of at most {MOST_STEPS} steps, got {numbers[0]} to {numbers[1]}.")
        return list(range(numbers[0], numbers[1] + 1))
    return numbers
