"""Classifiers: actors that learn the labels of a table with a cross-entropy loss instead of rewards."""

import math
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from difflogic.config.policy import ClassifierConfig, TableConfig
from difflogic.config.table import LabelledTable, Numbers
from difflogic.core.interval import wilson_interval
from difflogic.errors import UsageError
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.netlist import gate_arrays
from difflogic.policies.actors import LogicActor, Sightings
from difflogic.policies.buffers import minibatches
from difflogic.policies.environments import Arrays, Floats, Spaces
from difflogic.policies.evaluate import Decide, Score
from difflogic.policies.learner import Chooser
from difflogic.tensor import Tensor, optim

AT_ONCE, AT_ONCE_COLUMNS = 1024, 64
"""Maximum number of rows classified at a time, and of columns whose mean and spread are measured at a time."""
REWIRING_UPDATES, REWIRING_ROWS = 200, 2048
"""Number of updates after which candidates are replaced, and of training rows whose gradients select new ones."""
SHIFTED = 0.5
"""Probability that an image gets a random shift, which may be 0 pixels, if `table.shift` is above 0."""
SAMPLED = 10_000
"""Approximate number of training rows for an evaluation during training, if there are no validation rows."""


def spaces(table: TableConfig) -> Spaces:
    """Return spaces whose observations are the features of a table and whose actions are its classes."""
    return Spaces(len(table.features), len(table.classes))


class Rows:
    """Rows of a table, split into training rows, validation rows to choose the best agent, and held-out rows."""

    def __init__(self, config: ClassifierConfig, table: LabelledTable | None) -> None:
        """Split the rows. Raises UsageError if `table` is None or differs from the table of the configuration."""
        if table is None or table.sha256 != config.table.sha256:
            raise UsageError(
                f"The configuration {config.name} needs its own table, with the label {config.table.label}, got "
                f"{'none' if table is None else 'another table'}: pass the table as `table`, or by --data FILE --label "
                f"{config.table.label}."
            )
        self.config, self.table, self.spaces = config.table, table, spaces(config.table)
        self.parts = table.parts(config.table)

    def seen(self) -> Sightings:
        """Return mean and spread of each column over the training rows."""
        # Few columns are measured at a time, since the computation takes eight times the memory of byte columns.
        columns = range(0, self.table.x.shape[1], AT_ONCE_COLUMNS)
        parts = [self.table.x[self.parts.learned, k : k + AT_ONCE_COLUMNS] for k in columns]
        mean, spread = (np.concatenate([measure(part, axis=0) for part in parts]) for measure in (np.mean, np.std))
        return Sightings(mean.astype(np.float32), np.where(spread > 0, spread, 1).astype(np.float32))

    def score(self, decide: Decide, held_out: bool) -> Score:
        """Score held-out or validation rows (training rows if none); a row's return is 1 if correct, otherwise 0."""
        rows = self.parts.held_out if held_out else self.parts.validation
        if not len(rows):
            rows = self.parts.learned[:: 1 if held_out else max(1, len(self.parts.learned) // SAMPLED)]
        named = [decide(self.table.x[rows[k : k + AT_ONCE]]) for k in range(0, len(rows), AT_ONCE)]
        right = np.concatenate(named) == self.table.y[rows]
        return Score(tuple(right.astype(float).tolist()), (1,) * len(rows))

    def most_frequent(self) -> dict[str, float]:
        """Return name and held-out accuracy of a baseline that always predicts the most frequent training class."""
        place = int(np.bincount(self.table.y[self.parts.learned]).argmax())
        return {f"always {self.table.classes[place]}": self.score(lambda x: np.full(len(x), place), True).mean}

    def state(self) -> Arrays:
        """Return an empty state, since the configuration determines the rows and their order."""
        return {}

    def restore(self, state: Arrays) -> None:
        pass

    def close(self) -> None:
        pass


class Classifier(Chooser):
    """Learner that trains its actor by the cross-entropy between softmax preferences and labels."""

    config: ClassifierConfig

    @cached_property
    def _optimizer(self) -> optim.Adam:
        part = self.config.table if self.config.policy == "mlp" else self.config.gates
        return optim.Adam(self.actor.parameters(), part.learning_rate)

    @property
    def iteration_steps(self) -> int:
        return self.config.table.pass_rows

    def iterate(self, rows: Rows, iteration: int, progress: float, stepped: Callable[[], None]) -> dict[str, float]:
        """Train for one pass over the training rows, calling `stepped` after each gradient step; return its metrics."""
        # Each iteration has a separate generator, so that a resumed run samples the same batches.
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.config.seed, 3, iteration])))
        self.actor.began(progress)
        learned, losses, size = rows.parts.learned, [], self.config.table.batch_size
        before, actor = iteration * max(1, len(learned) // size), self.actor

        def loss_of(places: npt.NDArray[np.int64], preferences: Tensor, some: slice = slice(None)) -> Tensor:
            labels = self.distribution.coded(rows.table.y[learned[places[some]]])
            return -self.distribution.log_probs(preferences, self._tensor(labels)).mean()

        def features(places: npt.NDArray[np.int64]) -> Floats:
            # Batches are encoded one by one, since the bits of a table of images take 28 times the memory of its bytes.
            x = rows.table.x[learned[places]]
            return actor.features(shifted(x, self.config.table.shift, generator) if self.config.table.shift else x)

        for number, places in enumerate(minibatches(len(learned), size, generator), before):
            is_due = number > 0 and number % REWIRING_UPDATES == 0 and progress < self.config.table.rewiring
            if is_due and isinstance(actor, LogicActor) and actor.wires:
                sample = generator.permutation(len(learned))[:REWIRING_ROWS]
                actor.rewire(features(sample), partial(loss_of, sample), generator)
            preferences = self.actor(self._tensor(features(places)))
            loss = loss_of(places, preferences)
            loss.backward()
            self._optimizer.step()
            self.actor.updated()
            losses.append(loss.item())
            stepped()
        return {"policy_loss": float(np.mean(losses)), "updates": len(losses)}

    def _parts(self) -> dict[str, list[Tensor]]:
        return {"optimizer": self._optimizer.state}


def shifted(x: Numbers, most: int, generator: np.random.Generator) -> Numbers:
    """Shift about half of the square images in the rows of `x` by up to `most` pixels, and fill the gaps with 0."""
    side = math.isqrt(x.shape[1])
    padded = np.pad(x.reshape(-1, side, side), ((0, 0), (most, most), (most, most)))
    is_shifted = generator.random(len(x)) < SHIFTED
    begin = np.where(is_shifted, generator.integers(0, 2 * most + 1, (2, len(x))), most)
    rows, columns = begin[..., None] + np.arange(side)
    places = np.arange(len(x))[:, None, None]
    moved: Numbers = padded[places, rows[:, :, None], columns[:, None, :]].reshape(len(x), -1)
    return moved


def function_of(actor: LogicActor, table: TableConfig) -> FunctionNetlist:
    """Return the hard circuit that computes the index of the class from a row's features. Raises CircuitError."""
    return FunctionNetlist(
        thermometer=actor.thermometer,
        observations=table.features,
        choices=table.classes,
        **gate_arrays(*actor.decision()),
    ).validated()


def accuracy(right: int, rows: int, which: str) -> str:
    """Return a text with the accuracy, `right` of `rows` rows, and its 95 % interval; `which` describes the rows."""
    low, high = wilson_interval(right, rows)
    return (
        f"accuracy {100 * right / rows:.1f} %, {right} of {rows} rows {which}; 95 % interval {100 * low:.1f} to "
        f"{100 * high:.1f} %"
    )
