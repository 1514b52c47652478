"""Custom tasks in Python: a class with settings that draws samples, and may evaluate and draw results.

    @dataclass(frozen=True)
    class Fill(difflogic.Task):
        "Every row becomes what its first cell is."

        version = "1"
        side: int = difflogic.setting(8, "Cells a side", least=3, most=64)

        def samples(self, rng, count):
            x = rng.integers(0, 2, (count, self.side, self.side, 1))
            return difflogic.Dataset.of(x, np.repeat(x[:, :, :1], self.side, axis=2), steps=self.side)

`Trainer(Fill(side=6), engine)` trains the task. If its distribution has an entry point `difflogic.tasks`, the task has
a name for commands and run folders: see `difflogic.config.registered`.
"""

import dataclasses
import inspect
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.config.dataset import Dataset
from difflogic.config.fields import Section, Table, build, field, merged, plain, section, shown
from difflogic.config.limits import COUNT, FILE_NAME, between, one_of
from difflogic.config.model import ModelConfig, layered
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.core.bits import Bits
from difflogic.errors import ConfigError, FaultyTaskError, LimitError
from difflogic.system.memory import physical_memory

TRAINING, FRESH = range(2)
"""Indices of random streams: for the samples of a run, and for evaluation samples that training never sees."""
SAMPLES, FEW = 2048, 2
"""Default number of samples of a run, and number of samples that are drawn to estimate the size in memory."""
MEMORY_SHARE = 16
"""Minimum ratio of the machine's memory to the size of samples, of which several copies exist while they are drawn."""
MOST_PIXELS = 1 << 24
"""Maximum number of values, three per pixel, of an image that a task draws."""
TASK_FIELDS = frozenset(field.name for field in dataclasses.fields(TaskConfig))


def setting(
    default: Any, about: str, least: int | None = None, most: int | None = None, among: tuple[str, ...] = ()
) -> Any:
    """Declare a setting of a task: a field with a default, a meaning and limits.

        >>> difflogic.setting(6, "Cells a side", least=3, most=64).default
        6

    Args:
        default: Default value of the setting.
        about: Meaning of the setting, in one sentence without its full stop.
        least: Minimum of an integer setting.
        most: Maximum of an integer setting.
        among: Allowed values of a text setting.

    Returns:
        A field of a dataclass.
    """
    limits = one_of(among) if among else None
    if not among and (least is not None or most is not None):
        limits = between(least or 0, 2**31 if most is None else most)
    return field(about, limits, default=default)


def circuit(channels: int, kernels: int = 4, hidden: tuple[int, ...] = (64, 64, 32), **others: Any) -> ModelConfig:
    """Return the shape of a circuit for a task: perception kernels of 14 gates, and an update network.

        >>> difflogic.circuit(channels=4, periodic=True).kernels
        4

    Args:
        channels: Number of bits per cell, C.
        kernels: Number of perception kernels, K.
        hidden: Number of gates of each layer of the update network except the last.
        others: Further fields of `[model]`, such as `periodic=True`.

    Returns:
        The `model` of a configuration.
    """
    return layered(channels, kernels, (9, 8, 4, 2), hidden, **{"wiring_per_kernel": True} | others)


@section
class Task(Section):
    """Base class of tasks in Python. A subclass is a frozen dataclass; its fields, made by `setting`, are its settings.

    Samples may depend only on the settings and `rng`. A run from the same configuration draws them again and rejects
    different samples, so change `version` whenever the samples change.

        >>> import dataclasses
        >>> @dataclasses.dataclass(frozen=True)
        ... class Invert(difflogic.Task):
        ...     side: int = difflogic.setting(6, "Cells a side", least=3, most=64)
        ...
        ...     def samples(self, rng, count):
        ...         x = rng.integers(0, 2, (count, self.side, self.side))
        ...         return difflogic.Dataset.of(x, 1 - x)
        >>> Invert(side=5).samples(np.random.default_rng(0), 2).x.shape
        (2, 5, 5, 1)
    """

    version = ""

    @abstractmethod
    def samples(self, rng: np.random.Generator, count: int) -> Dataset:
        """Draw samples.

        Args:
            rng: The only source of randomness.
            count: The number of samples.

        Returns:
            The samples: initial states, targets after some steps, and which values are compared.
        """
        raise NotImplementedError

    def fields(self) -> Mapping[str, Any]:
        """Return the task's default configuration fields, by section, in the form that `Config.with_` takes.

        Grid, steps and loss follow from the samples. `model` may be a result of `circuit`, as it is by default.
        """
        return {}

    def judge(self, states: Bits, samples: Dataset) -> Mapping[str, float]:
        """Return metrics by name, which `difflogic evaluate` shows.

        `states [N, J, H, W, C]` are the hard circuit's states after the J compared steps, from fresh `samples`.
        """
        return {}

    def pictures(self, film: Bits, samples: Dataset) -> Mapping[str, npt.NDArray[np.uint8]]:
        """Return images by name, uint8 `[H, W, 3]`, which a run writes as task-NAME.png when it ends.

        `film [N, T+1, H, W, C]` has all states of the hard circuit, from a few fresh `samples`.
        """
        return {}


class OwnTask:
    """Custom task with its name; exceptions in the task's code become a FaultyTaskError of one sentence."""

    def __init__(self, name: str, cls: Any, settings: Mapping[str, Any], task: Mapping[str, Any]) -> None:
        """Make a task of the class `cls` from `settings`; settings in `task`, the section [task], override these.

        Raises ConfigError for settings that the task does not accept, or FaultyTaskError if `cls` is not a task.
        """
        self.name = name
        # A class without its own @dataclass would silently ignore its settings.
        if not (inspect.isclass(cls) and issubclass(cls, Task) and "__dataclass_fields__" in vars(cls)):
            raise self._faulty("is not a task: expected a subclass of difflogic.Task, with @dataclass(frozen=True)")
        self.takes = frozenset(field.name for field in dataclasses.fields(cls))
        if taken := sorted(TASK_FIELDS & self.takes):
            raise self._faulty(f"has a setting {taken[0]!r}, which is a field of every task: rename it")
        version: Any = cls.version
        if not isinstance(version, str) or not version:
            raise self._faulty('has no version: expected a text, such as version = "1"')
        own = {name: task[name] for name in self.takes & set(task)}
        with self._guarded("rejects its settings", ConfigError):
            self.task: Task = build(cls, {**settings, **own}, "task.")
        self.settings = Table({name: plain(getattr(self.task, name)) for name in sorted(self.takes)})

    @property
    def about(self) -> str:
        """First line of the docstring of the task's class, without its full stop."""
        return (inspect.getdoc(type(self.task)) or "").partition("\n")[0].rstrip(".")

    def config(self, count: Any = None) -> Config:
        """Return the configuration of a run on `count` samples. Raises ConfigError, FaultyTaskError or LimitError."""
        with self._guarded("failed in `fields`"):
            suits = {key: dataclasses.asdict(value) if isinstance(value, Section) else dict(value)
                     for key, value in self.task.fields().items()}  # fmt: skip
        usual = suits.get("data", {}).get("samples", SAMPLES)
        samples = self.drawn(usual if count is None else count)
        default = {
            "name": self.name.rpartition(":")[2],
            "model": dataclasses.asdict(circuit(max(4, samples.x.shape[3]))),
            "task": {"start": "zeros"},
            "train": {"epochs": 1000, "batch": 16},
            "initial": {"logit": 6.0},
        }
        data = plain(merged(merged(default, suits), self.derived(samples)))
        with self._guarded("has an invalid configuration, which follows from its `fields` and samples"):
            return Config.from_dict(data)

    def derived(self, samples: Dataset) -> dict[str, Any]:
        """Return the configuration fields that describe the task and its samples, by section."""
        plugin = {"name": self.name, "version": self.task.version, "settings": self.settings}
        return {**samples.fields(), "plugin": plugin}

    def drawn(self, count: Any, stream: int = TRAINING, seed: int = 0) -> Dataset:
        """Draw `count` samples, the same for the same arguments. Raises ConfigError, FaultyTaskError or LimitError."""
        if not COUNT.holds(count):
            raise ConfigError(f"data.samples must be {COUNT.words}, got {shown(count)}.")
        memory, few = physical_memory(), self._drawn(FEW, TRAINING, 0)
        size = (few.x.nbytes + few.y.nbytes) // FEW
        if memory is not None and MEMORY_SHARE * size * count > memory:
            raise LimitError(
                f"{count} samples of the task {self.name} take {size * count / 1e9:.1f} GB, more than this machine has "
                f"room for: set data.samples to at most {memory // (MEMORY_SHARE * size)}."
            )
        return self._drawn(count, stream, seed)

    def _drawn(self, count: int, stream: int, seed: int) -> Dataset:
        with self._guarded(f"failed to make {count} samples"):
            samples = _samples(self.task, count, stream, seed)
        if not isinstance(samples, Dataset) or len(samples) != count:
            got = f"{len(samples)}" if isinstance(samples, Dataset) else f"a {type(samples).__name__}"
            raise self._faulty(f"must return a difflogic.Dataset of {count} samples, got {got}")
        return samples

    def evaluated(self, states: Bits, samples: Dataset) -> dict[str, float]:
        """Return the metrics that the task computes from a circuit's states. Raises FaultyTaskError."""
        with self._guarded("failed in `judge`"):
            numbers = {str(name): float(value) for name, value in self.task.judge(states, samples).items()}
        for name, value in numbers.items():
            if not math.isfinite(value):
                raise self._faulty(f"returned {value} for {name} from `judge`: expected a finite number")
        return numbers

    def drawings(self, film: Bits, samples: Dataset) -> dict[str, npt.NDArray[np.uint8]]:
        """Return the images that the task draws, by name, uint8 `[H, W, 3]`. Raises FaultyTaskError."""
        with self._guarded("failed in `pictures`"):
            images: dict[Any, Any] = dict(self.task.pictures(film, samples))
        for name, image in images.items():
            if not isinstance(name, str) or not FILE_NAME.holds(name) or name.startswith("."):
                raise self._faulty(
                    f"returned an image with the name {name!r}: expected {FILE_NAME.words}, without a leading dot"
                )
            array = np.asarray(image)
            if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or not 0 < array.size <= MOST_PIXELS:
                raise self._faulty(
                    f"returned the image {name} as {array.dtype} {list(array.shape)}: expected uint8 "
                    f"[H, W, 3] of at most {MOST_PIXELS} values"
                )
        return images

    def _faulty(self, problem: str) -> FaultyTaskError:
        return FaultyTaskError(f"The task {self.name} {problem}.")

    @contextmanager
    def _guarded(self, problem: str, *passed: type[Exception]) -> Iterator[None]:
        try:
            yield
        except passed:
            raise
        except Exception as error:
            raise self._faulty(f"{problem}: {type(error).__name__}: {one_line(error)}") from error


@lru_cache(maxsize=2)
def _samples(task: Task, count: int, stream: int, seed: int) -> Any:
    # Cached, since both making a configuration and training on it need the samples.
    return task.samples(np.random.default_rng([stream, seed]), count)


def one_line(error: BaseException) -> str:
    """Return the message of an error from another library as one line without a full stop, to end a sentence."""
    return " ".join(str(error).split()).rstrip(".")[:300]
