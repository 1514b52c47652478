"""Compare the gradients of all engines with each other and with finite differences.

Errors are relative to a layer's largest gradient in the float64 reference, because most gradients are near 0 and
are mostly rounding errors. In a trained circuit, this may be true of all gradients of a layer. For such layers the
tolerance is a multiple of the error of the float32 reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import combinations

import numpy as np
import numpy.typing as npt

from difflogic.config.dataset import Dataset
from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.devices.open import place
from difflogic.engine import events
from difflogic.engine import job as tasks
from difflogic.engine.api import Engine, describe_engine
from difflogic.engine.batch import Batch
from difflogic.engine.events import Damage, draw_corners
from difflogic.engine.job import Floats, Job, TrainState
from difflogic.errors import DeviceError, LimitError, MissingPackagesError, UsageError
from difflogic.model.circuit import ArraysByNetwork, Circuit
from difflogic.model.layout import flat_layout
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs.checkpoint import ModelState
from difflogic.system.memory import physical_memory

FLOAT64, FLOAT32, DIFFERENCES = "reference float64", "reference float32", "finite differences"

TOLERANCE = 1e-4
"""Default maximum error of a gradient, relative to the layer's largest gradient."""
CLEAR = TOLERANCE / 4
"""Maximum relative error of the float32 reference in layers whose tolerance is TOLERANCE."""
FLOAT32_SPREAD = 16
"""Maximum error in all other layers, as a multiple of the error of the float32 reference.

Rounding depends on the order of summation: errors up to 7 times as large were measured. A layer's float32 error can be
small by chance, so the median over all layers replaces smaller errors."""
STEP = 1e-5
"""Half width h of central differences, a balance between the truncation error h^2 and the rounding error 1e-16 / h."""
ROUNDING = 64 * 2.0**-53
"""Assumed relative rounding error of a float64 loss, which sums hundreds of terms computed by hundreds of layers."""
WORTH_A_DIFFERENCE = 0.01
"""Minimum size of a sampled gradient relative to its layer's largest; rounding errors dominate in smaller ones."""

Array = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Subject:
    """Circuit whose gradients are compared, with the batch of its next training epoch."""

    config: Config
    circuit: Circuit
    epoch: int
    x: Floats
    """Initial states, `[B, H, W, C]` of 0 and 1."""
    y: Floats
    """Targets, `[J, B, H, W, loss_channels]`, as returned by `Job.draw`."""
    masks: Floats | None
    """Fire masks, `[T, H, W, 1]`; None for a synchronous automaton."""
    damage: Damage | None

    @classmethod
    def of(cls, job: Job, state: TrainState) -> Subject:
        """Return the subject for a training state; initial states, fire masks and damage are sampled as in training."""
        task, train = job.config.task, job.config.train
        _, data_key = prng.split(state.data_key)
        _, key = prng.split(state.train_key)
        grids, y = job.draw(data_key)
        # The batch comes from the pool; newly sampled initial states only replace the pool's worst entries afterwards.
        if state.pool is not None:
            grids = state.pool[events.draw_places(data_key, train.batch, job.config.pool.size)]
        masks = None
        if train.asynchronous:
            masks = events.draw_masks(key, task.steps, (task.height, task.width, 1), train.fire_rate)[1]
        corners = None
        if task.damage_steps:
            corners = draw_corners(key, len(task.damage_steps), train.batch, task.height, task.width)
        circuit, x = job.circuit.with_logits(state.logits), grids.astype(np.float32)
        return cls(job.config, circuit, state.epoch, x, y, masks, job.damage(corners, key, train.batch))

    @classmethod
    def start(cls, config: Config) -> Subject:
        """Return the subject before the first epoch of a configuration.

        Raises:
            DataError: The task requires data samples, which a configuration does not contain.
            LimitError: The gate values of a batch do not fit into this machine's memory.
        """
        job = tasks.make_job(config, Circuit.initial(config.model, config.seed, config.initial))
        _check_memory(job)
        return cls.of(job, TrainState.initial(job))

    @classmethod
    def loaded(cls, checkpoint: ModelState, batch: int | None = None, data: Dataset | None = None) -> Subject:
        """Return the subject for the next epoch of a saved run.

        Args:
            checkpoint: Saved state of the run.
            batch: Number of initial states; None for the batch size of the run.
            data: Data samples of the run; None for a task without data samples.

        Raises:
            LimitError: The gate values of a batch do not fit into this machine's memory.
        """
        config = checkpoint.config if batch is None else checkpoint.config.with_(train={"batch": batch})
        job = tasks.make_job(config, checkpoint.circuit, data)
        _check_memory(job)
        return cls.of(job, checkpoint.state)

    @property
    def batch(self) -> Batch:
        task = self.config.task
        return Batch(self.x, self.y, task.steps, task.loss_channels, self.masks, task.loss_steps, self.damage)


def _check_memory(job: Job) -> None:
    """Raise LimitError if the float64 values of all gates in all steps of a batch exceed this machine's memory."""
    task, memory = job.config.task, physical_memory()
    # Check before NumPy allocates: Linux grants more memory than it has, and kills the process that uses it.
    size = task.steps * flat_layout(job.circuit).nodes * task.height * task.width * np.dtype(np.float64).itemsize
    batch = job.config.train.batch
    if memory is not None and size * batch > memory:
        raise LimitError(
            f"Gradients of the reference for a batch of {batch} need {size * batch / 1e9:.1f} GB, but this machine has "
            f"{memory / 1e9:.1f} GB of memory: a batch of at most {memory // size} fits."
        )


GradientSource = Callable[[Subject], ArraysByNetwork]
"""Function that returns a subject's gradients with respect to the logits, in the shapes of the logits."""


@dataclass(frozen=True)
class Pair:
    """Comparison of two sources' gradients in the layer with the largest error relative to its tolerance."""

    one: str
    other: str
    layer: str
    """Name and index of the layer, such as `update 3`, counted from 0."""
    error: float
    """Largest difference in the layer, relative to the layer's largest gradient."""
    allowed: float

    @property
    def passed(self) -> bool:
        return self.error <= self.allowed


Differences = Sequence[tuple[str, int, float]]
"""Central differences of the float64 loss for a sample of logits: layer, index in the flattened layer, and value."""


def compare(subject: Subject, sources: Mapping[str, GradientSource], samples: int) -> list[Pair]:
    """Compare the sources and the float32 and float64 reference with each other and with finite differences.

    Finite differences are computed for `samples` logits, spread evenly over the layers. Exceptions of the sources are
    passed on.
    """
    references = {FLOAT64: ReferenceEngine(np.float64), FLOAT32: ReferenceEngine()}
    sources = {name: _gradients(engine) for name, engine in references.items()} | {**sources}
    answers = {name: _layers(source(subject)) for name, source in sources.items()}
    tolerances = _Tolerances(answers[FLOAT64], answers[FLOAT32])
    pairs = [tolerances.pair(one, other, answers[one], answers[other]) for one, other in combinations(answers, 2)]
    if samples == 0:
        return pairs
    differences = finite_differences(subject, answers[FLOAT64], samples)
    return pairs + [tolerances.sampled(name, answer, *differences) for name, answer in answers.items()]


def finite_differences(subject: Subject, layers: Mapping[str, Array], samples: int) -> tuple[Differences, float]:
    """Return finite differences for `samples` logits with noticeable gradients, and the rounding error of each.

    The logits are sampled with a fixed seed, and spread evenly over the layers.
    """
    random, names, differences = np.random.default_rng(0), list(layers), []
    starts = np.cumsum([0, *(layer.size for layer in layers.values())])
    engine, logits = ReferenceEngine(np.float64), subject.circuit.flat_logits().astype(np.float64)

    def loss(logits: Array) -> float:
        return engine.loss(subject.circuit.with_logits(logits), subject.batch)

    for sample in range(samples):
        number = sample % len(names) if samples >= len(names) else sample * len(names) // samples
        sizes = np.abs(layers[names[number]]).ravel()
        # A difference has the rounding error ROUNDING * loss / STEP, which dominates at entries near 0.
        index = int(random.choice(np.flatnonzero(sizes >= WORTH_A_DIFFERENCE * sizes.max())))
        step = np.zeros_like(logits)
        step.flat[starts[number] + index] = STEP
        # In central differences even powers of the step cancel, so the error is of second order.
        differences.append((names[number], index, (loss(logits + step) - loss(logits - step)) / (2 * STEP)))
    return differences, ROUNDING * abs(loss(logits)) / STEP


class _Tolerances:
    def __init__(self, exact: Mapping[str, Array], single: Mapping[str, Array]) -> None:
        self._largest = {name: float(np.abs(layer).max()) or 1.0 for name, layer in exact.items()}
        distances = {name: float(np.abs(single[name] - layer).max()) for name, layer in exact.items()}
        # A layer in which float32 is exact by chance does not show the accuracy of float32.
        usual = float(np.median(list(distances.values())))
        shares = {name: max(distance, usual) / self._largest[name] for name, distance in distances.items()}
        self._allowed = {
            name: TOLERANCE if share <= CLEAR else FLOAT32_SPREAD * share for name, share in shares.items()
        }

    def pair(self, one: str, other: str, ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> Pair:
        """Compare two sources' gradients; return the result of the layer with the largest `error / allowed`."""
        pairs = []
        for name, largest in self._largest.items():
            error = _worst(ours[name].astype(np.float64) - theirs[name]) / largest
            pairs.append(Pair(one, other, name, error, self._allowed[name]))
        return max(pairs, key=lambda pair: pair.error / pair.allowed)

    def sampled(self, name: str, answer: Mapping[str, Array], differences: Differences, rounding: float) -> Pair:
        """Compare a source's gradients with finite differences, whose `rounding` error the tolerances include."""
        pairs = []
        for layer, index, value in differences:
            largest = self._largest[layer]
            error = _worst(np.array([float(answer[layer].flat[index]) - value])) / largest
            tolerance = TOLERANCE if name == FLOAT64 else self._allowed[layer]
            pairs.append(Pair(name, DIFFERENCES, layer, error, tolerance + rounding / largest))
        return max(pairs, key=lambda pair: pair.error / pair.allowed)


def _worst(difference: Array) -> float:
    """Return the largest absolute value of `difference`, or infinity if a value is not finite."""
    return float(np.abs(difference).max()) if np.isfinite(difference).all() else float("inf")


def _gradients(engine: Engine) -> GradientSource:
    return lambda subject: engine.loss_and_gradients(subject.circuit, subject.batch)[1]


def _layers(gradients: ArraysByNetwork) -> dict[str, Array]:
    """Return a mapping from layer names, such as `update 3`, to gradients, in the order of the flat logits."""
    return {f"{network} {index}": layer for network, layers in gradients.items() for index, layer in enumerate(layers)}


AUTODIFF = ("jax", "torch")
"""Names of the gradient sources that use automatic differentiation."""


@dataclass
class GradientSources:
    """Available gradient sources by name, descriptions of their devices, and reasons why other sources are skipped."""

    found: dict[str, GradientSource] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def find(subject: Subject, selectors: Sequence[str] = ()) -> GradientSources:
    """Return the gradient sources named in `selectors`, or all available sources if `selectors` is empty.

    Raises UsageError for an unknown name, and DeviceError or MissingPackagesError for a named source that cannot run.
    """
    sources = GradientSources()
    for selector in selectors or ("cpu", "gpu", *AUTODIFF):
        try:
            source, described = _open(selector, subject)
        # A named source must be available; the others are skipped, and the report says why.
        except (DeviceError, MissingPackagesError, UsageError) as error:
            if selectors:
                raise
            sources.skipped[selector] = str(error)
        else:
            sources.found[selector], sources.described[selector] = source, described
    return sources


def _open(selector: str, subject: Subject) -> tuple[GradientSource, str]:
    """Return the gradient source that `selector` names, and a description of its device."""
    if selector in AUTODIFF:
        return _autodiff(selector, subject), f"{selector} {version(selector)}, by automatic differentiation"
    engine = place(selector).engine
    return _gradients(engine), describe_engine(engine.info)


def _autodiff(name: str, subject: Subject) -> GradientSource:
    if subject.damage is not None or subject.config.task.loss_steps or subject.circuit.candidates > 1:
        raise UsageError(
            f"The model in {name} does not support damage, losses before the last step or candidates: use cpu or gpu."
        )
    gradients: Callable[..., tuple[float, ArraysByNetwork]]
    try:
        if name == "jax":
            from difflogic.autodiff.jax_model import gradients
        else:
            from difflogic.autodiff.torch_model import gradients
    except ImportError as error:
        raise MissingPackagesError.of(f"The model in {name}", "bench", error.name) from error
    return lambda asked: gradients(asked.circuit, asked.batch)[1]
