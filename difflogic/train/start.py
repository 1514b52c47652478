"""A run begins at one of three places: fresh, from another run's circuit, or where it was left."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from difflogic.config import dataset, kept_starts, schedule
from difflogic.config.dataset import Dataset
from difflogic.config.kept_starts import Grids
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.engine import job
from difflogic.engine import population as populations
from difflogic.engine.job import TrainState
from difflogic.errors import CheckpointError, ConfigError, UsageError
from difflogic.model.circuit import Circuit
from difflogic.runs import checkpoint, chosen
from difflogic.runs.checkpoint import Checkpoint, ModelState
from difflogic.runs.folder import RunFolder
from difflogic.runs.journal import Row
from difflogic.system import files
from difflogic.train import reach
from difflogic.train.replica import Replica


@dataclass(frozen=True, eq=False)
class Start:
    """A checkpoint, and the members it holds with the rows that led to it."""

    checkpoint: Checkpoint[ModelState]
    members: list[Replica]
    notices: tuple[str, ...] = ()
    lender: chosen.Chosen | None = None
    """Whose circuit is the first one."""
    best: ModelState | None = None
    """The best model so far, where the run had one."""


def fresh(request: TrainRequest) -> Start:
    """Epoch 0: pass-through gates, or logits and the wiring they were trained with of another run.

    Raises ConfigError or LimitError for a population that cannot be, ConfigError for a target that nothing can reach,
    CheckpointError where that other run cannot be read, or has circuits of another shape, and for a configuration that
    keeps start grids UsageError or DataError where `request.starts` is not their file, DataError where `request.data`
    are not the samples of the configuration.
    """
    config, starts, data = request.whole, request.starts, request.data
    if not isinstance(config, Config):
        raise ConfigError("This configuration trains agents, which begin otherwise.")
    init_from = None if request.init_from is None else Path(request.init_from)
    configs = populations.configs(config, request.population)
    # Before any circuit is made: what nothing can reach is refused, and what takes more steps is told.
    notice = reach.notice(config)
    lender = None if init_from is None else chosen.load(init_from)
    circuit = None if lender is None else lender.circuit
    kept = _kept(config, starts)
    saved = Checkpoint(tuple(_first(each, circuit, init_from, kept, data) for each in configs))
    notices = [] if notice is None else [notice]
    if data is not None and config.task.start == "zeros" and not config.train.asynchronous:
        at_odds = data.contradiction(config.model.periodic, config.model.neighbourhood)
        notices += [f"The samples cannot all be right: {at_odds}."] if at_odds else []
    if kept is not None:
        notices.append(f"Half of all starts are drawn from the {len(kept)} in {starts}.")
    return Start(saved, members(saved, [[] for _ in configs], data), tuple(notices), lender)


def _kept(config: Config, file: Path | None) -> Grids | None:
    """The start grids that the configuration keeps."""
    if not config.pool.starts:
        return None
    if file is None:
        raise UsageError("The configuration keeps start grids, pool.starts: give their file with `starts`.")
    grids = kept_starts.load(file, config)
    if kept_starts.digest(grids) != config.pool.starts:
        raise UsageError(f"{file} does not hold the start grids that the configuration keeps, pool.starts.")
    return grids


def _first(
    config: Config, lender: Circuit | None, path: Path | None, kept: Grids | None, data: Dataset | None
) -> ModelState:
    circuit = Circuit.initial(config.model, config.seed, config.initial)
    if lender is not None:
        circuit = _borrowed(circuit, lender, path)
    state = TrainState.initial(job.make_job(config, circuit, data))
    if kept is not None and state.pool is not None:
        state = replace(state, pool=kept_starts.pool_of(state.pool, kept))
    return ModelState(config, circuit, state)


def _borrowed(expected: Circuit, circuit: Circuit, path: Path | None) -> Circuit:
    circuit = circuit.chosen if expected.candidates == 1 else circuit
    for network, layers in expected.logits.items():
        wanted = [list(layer.shape) for layer in layers]
        given = [list(layer.shape) for layer in circuit.logits.get(network, [])]
        if wanted != given:
            raise CheckpointError(
                f"`init_from` needs a run with a circuit of the same shape: the {network} logits should be "
                f"{wanted}, those of {path} are {given}."
            )
    # The wires come with the logits that were trained on them. What lies outside the grid is the new task's choice.
    return replace(circuit, periodic=expected.periodic).within(expected.neighbourhood)


def resumed(config: Config, folder: RunFolder, file: Path, asked: Path) -> Start:
    """Return where the run in `folder` was left, by its checkpoint `file`. `asked` is what the user named.

    `config` is its own, a population's with the first seed. Raises CheckpointError for an unusable file,
    ConfigError where `config` is another run's, UsageError where the run is already past `config.train.epochs`.
    """
    found = checkpoint.read(file)
    epochs, first = config.train.epochs, found.members[0].config
    # Both are compared at the number of epochs that the run had so far: that alone may change.
    if first != config.with_(train={"epochs": first.train.epochs}):
        raise ConfigError(f"The run in {folder.path} has another configuration: only epochs may change on resume.")
    if found.epoch > epochs:
        raise UsageError(
            f"The run in {folder.path} is at epoch {found.epoch}, past the {epochs} asked for: give more `epochs`."
        )
    notices = []
    if file.name == checkpoint.PREVIOUS and asked.is_dir():
        notices.append(f"{checkpoint.NAME} is missing (a save was cut short): going on from {file.name}.")
    # Rows are written before the checkpoint of their epoch, so a run that was killed may have rows that are newer.
    rows = [each[: found.epoch] for each in folder.read_rows(found.seeds)]
    complete = min(len(each) for each in rows)
    if complete < found.epoch:
        raise CheckpointError(
            f"The metrics in {folder.path} end at epoch {complete}, but its checkpoint is of epoch "
            f"{found.epoch}: restore metrics.jsonl, or start a new run with `init_from` {files.quoted(folder.path)}."
        )
    if found.epoch < epochs:
        # The last epoch is always evaluated. Say the schedule is 1, 10, 20 and the run ended at 12: a run that goes on
        # to 20 without a stop has no evaluation at 12, and neither may this one.
        rows = [_scheduled_only(each, config.train.eval_interval) for each in rows]
    best, notice = _best(folder, found.epoch)
    notices += [] if notice is None else [notice]
    here = tuple(replace(each, config=each.config.with_(train={"epochs": epochs})) for each in found.members)
    saved = replace(found, members=here)
    data = dataset.of_run(first, folder.path)
    return Start(saved, members(saved, rows, data), tuple(notices), best=best)


def _best(folder: RunFolder, epoch: int) -> tuple[ModelState | None, str | None]:
    """The best model of a run that goes on after `epoch`, unless it is of a later one; and what is to be told."""
    file = folder.path / checkpoint.BEST
    if not file.exists():
        return None, None
    try:
        best = checkpoint.load(file)
    except CheckpointError as error:
        # The run itself is intact, so a damaged best is no reason to stop it.
        return None, f"{file} is left out, the next circuit that is evaluated is the best again. {error}"
    # A newer best was kept just before a crash. Its epochs are trained again, so it comes again.
    return (best if best.state.epoch <= epoch else None), None


def members(saved: Checkpoint[ModelState], rows: Sequence[Sequence[Row]], data: Dataset | None = None) -> list[Replica]:
    """The models of a checkpoint, with the rows that led to it; `data` are the run's samples, where it has any."""
    return [
        Replica(job.make_job(each.config, each.circuit, data), each.state, list(so_far), each.best)
        for each, so_far in zip(saved.members, rows, strict=True)
    ]


def _scheduled_only(rows: Sequence[Row], interval: int) -> list[Row]:
    """Without the evaluation that only the earlier end called for: a run that never ended there has none."""
    return [row if schedule.is_evaluated(row.epoch, interval) else row.unevaluated() for row in rows]
