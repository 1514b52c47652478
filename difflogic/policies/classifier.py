"""A classifier: an actor that learns what the rows of a table are called, and not by rewards."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from difflogic.config.policy import ClassifierConfig, TableConfig
from difflogic.config.table import LabelledTable
from difflogic.core.interval import wilson_interval
from difflogic.errors import UsageError
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.netlist import gate_arrays
from difflogic.policies.actors import LogicActor, Sightings
from difflogic.policies.buffers import minibatches
from difflogic.policies.environments import Arrays, Spaces
from difflogic.policies.evaluate import Decide, Score
from difflogic.policies.learner import Chooser
from difflogic.tensor import Tensor, optim

AT_ONCE, AT_ONCE_COLUMNS = 4096, 64
"""Rows that are decided together, and columns that are measured together."""


def spaces(table: TableConfig) -> Spaces:
    """What a classifier of this table reads and chooses from."""
    return Spaces(len(table.features), len(table.classes))


class Rows:
    """Rows of a table that are learned, choose the best of a population, or are held out."""

    def __init__(self, config: ClassifierConfig, table: LabelledTable | None) -> None:
        """Raises UsageError where the configuration is of rows that are not given, or of others."""
        if table is None or table.sha256 != config.table.sha256:
            raise UsageError(
                f"The configuration {config.name} is of rows with the label {config.table.label}, which are needed "
                f"{'too' if table is None else 'and not others'}: give that `table`, or --data FILE --label "
                f"{config.table.label}."
            )
        self.config, self.table, self.spaces = config.table, table, spaces(config.table)
        self.parts = table.parts(config.table)

    def seen(self) -> Sightings:
        """Return mean and spread of the columns in the rows that are learned."""
        # A few columns at once: the mean and spread of bytes take eight times their memory.
        columns = range(0, self.table.x.shape[1], AT_ONCE_COLUMNS)
        parts = [self.table.x[self.parts.learned, k : k + AT_ONCE_COLUMNS] for k in columns]
        mean, spread = (np.concatenate([measure(each, axis=0) for each in parts]) for measure in (np.mean, np.std))
        return Sightings(mean.astype(np.float32), np.where(spread > 0, spread, 1).astype(np.float32))

    def score(self, decide: Decide, held_out: bool) -> Score:
        """A 1 for each row that is named rightly, of those held out or of those that choose; else a 0."""
        parts = self.parts
        rows = parts.held_out if held_out else parts.validation
        rows = rows if len(rows) else parts.learned
        named = [decide(self.table.x[rows[k : k + AT_ONCE]]) for k in range(0, len(rows), AT_ONCE)]
        right = np.concatenate(named) == self.table.y[rows]
        return Score(tuple(right.astype(float).tolist()), (1,) * len(rows))

    def most_frequent(self) -> dict[str, float]:
        """The accuracy of always giving the class that is the most frequent among the rows that are learned."""
        place = int(np.bincount(self.table.y[self.parts.learned]).argmax())
        return {f"always {self.table.classes[place]}": self.score(lambda x: np.full(len(x), place), True).mean}

    def state(self) -> Arrays:
        """Return nothing: which rows are learned and in which order follows from seeds."""
        return {}

    def restore(self, state: Arrays) -> None:
        pass

    def close(self) -> None:
        pass


class Classifier(Chooser):
    """An actor whose preferences learn by the cross-entropy of their softmax."""

    config: ClassifierConfig

    @cached_property
    def _optimizer(self) -> optim.Adam:
        part = self.config.table if self.config.policy == "mlp" else self.config.gates
        return optim.Adam(self.actor.parameters(), part.learning_rate)

    @property
    def iteration_steps(self) -> int:
        return self.config.table.pass_rows

    def iterate(self, rows: Rows, iteration: int, progress: float, stepped: Callable[[], None]) -> dict[str, float]:
        """One pass over the rows that are learned; `stepped` hears of each gradient step."""
        # A generator for each iteration, from its number: a resumed run draws the same.
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.config.seed, 3, iteration])))
        self.actor.began(progress)
        learned, losses = rows.parts.learned, []
        for places in minibatches(len(learned), self.config.table.batch_size, generator):
            # Bits of one batch at a time: those of a whole table of images take 28 times the memory of its bytes.
            batch = learned[places]
            preferences = self.actor(self._tensor(self.actor.features(rows.table.x[batch])))
            labels = self.distribution.coded(rows.table.y[batch])
            loss = -self.distribution.log_probs(preferences, self._tensor(labels)).mean()
            loss.backward()
            self._optimizer.step()
            self.actor.updated()
            losses.append(loss.item())
            stepped()
        return {"policy_loss": float(np.mean(losses)), "updates": len(losses)}

    def _parts(self) -> dict[str, list[Tensor]]:
        return {"optimizer": self._optimizer.state}


def function_of(actor: LogicActor, table: TableConfig) -> FunctionNetlist:
    """The gates of a classifier, from the columns of its table to the number of a class. Raises CircuitError."""
    return FunctionNetlist(
        thermometer=actor.thermometer,
        observations=table.features,
        choices=table.classes,
        **gate_arrays(*actor.decision()),
    ).validated()


def accuracy(right: int, rows: int, which: str) -> str:
    """An accuracy with its interval, in words; `which` rows they are."""
    low, high = wilson_interval(right, rows)
    return (
        f"accuracy {100 * right / rows:.1f} %, {right} of {rows} rows {which}; 95 % interval {100 * low:.1f} to "
        f"{100 * high:.1f} %"
    )
