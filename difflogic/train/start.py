"""Initial training state of a run: new circuits, the circuit of a source run, or a checkpoint to resume."""

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
    """Checkpoint from which training starts, with its models and their metrics so far."""

    checkpoint: Checkpoint[ModelState]
    members: list[Replica]
    notices: tuple[str, ...] = ()
    lender: chosen.Chosen | None = None
    """Source run of the initial circuit; None if there is no source run."""
    best: ModelState | None = None
    """Best model so far of a resumed run; None if there is no usable best model."""


def fresh(request: TrainRequest) -> Start:
    """Return the start of a new run: pass-through gates, or logits and wiring of the source run `request.init_from`.

    Raises:
        ConfigError: The population is invalid, or no circuit can reach the target.
        LimitError: The population does not fit into memory.
        CheckpointError: The source run cannot be read, or has circuits of a different shape.
        UsageError, DataError: `request.starts` or `request.data` does not match the configuration.
    """
    config, starts, data = request.whole, request.starts, request.data
    if not isinstance(config, Config):
        raise ConfigError("Expected a configuration of automata, got one of agents.")
    init_from = None if request.init_from is None else Path(request.init_from)
    configs = populations.configs(config, request.population)
    # The target is tested first, since making circuits takes longer.
    notice = reach.notice(config)
    source = None if init_from is None else chosen.load(init_from)
    grids = _start_grids(config, starts)

    def first(own: Config) -> ModelState:
        circuit = Circuit.initial(own.model, own.seed, own.initial)
        if source is not None:
            circuit = _with_logits(circuit, source.circuit, init_from, own.seed)
        state = TrainState.initial(job.make_job(own, circuit, data))
        if grids is not None and state.pool is not None:
            state = replace(state, pool=kept_starts.pool_of(state.pool, grids))
        return ModelState(own, circuit, state)

    saved = Checkpoint(tuple(map(first, configs)))
    notices = [] if notice is None else [notice]
    if data is not None and config.task.start == "zeros" and not config.train.asynchronous:
        at_odds = data.contradiction(config.model.periodic, config.model.neighbourhood)
        notices += [f"The samples contradict each other: {at_odds}."] if at_odds else []
    if grids is not None:
        notices.append(f"Half of all initial states are sampled from the {len(grids)} states in {starts}.")
    return Start(saved, members(saved, [[] for _ in configs], data), tuple(notices), source)


def _start_grids(config: Config, file: Path | None) -> Grids | None:
    """Return the initial states in the file that `pool.starts` requires, or None if no file is required."""
    if not config.pool.starts:
        return None
    if file is None:
        raise UsageError("The configuration uses initial states of a file (pool.starts): give the file with `starts`.")
    grids = kept_starts.load(file, config)
    if kept_starts.digest(grids) != config.pool.starts:
        raise UsageError(f"{file} does not contain the initial states of pool.starts: its hash differs.")
    return grids


def _with_logits(expected: Circuit, source: Circuit, path: Path | None, seed: int) -> Circuit:
    """Return the circuit of the source run if it has the shape of `expected`. Raises CheckpointError otherwise.

    If `expected` has candidates, a fixed wire of the source becomes the first one; `seed` samples the others.
    """
    if expected.candidates == 1:
        source = source.chosen
    elif source.candidates == 1:
        source = source.with_candidates(expected.candidates, seed)
    for network, layers in expected.logits.items():
        shapes = [list(layer.shape) for layer in layers]
        others = [list(layer.shape) for layer in source.logits.get(network, [])]
        if shapes != others:
            raise CheckpointError(
                f"`init_from` requires a run with a circuit of the same shape: expected {network} logits of shapes "
                f"{shapes}, got {others} in {path}."
            )
    # The wires belong to the trained logits; the boundary is that of the new task.
    return replace(source, periodic=expected.periodic).within(expected.neighbourhood)


def resumed(config: Config, folder: RunFolder, file: Path, named: Path) -> Start:
    """Return the start of a resumed run from its checkpoint `file`; `named` is the path given by the user.

    `config` is the configuration of the run, with the first seed. Raises CheckpointError for an unusable file,
    ConfigError if `config` differs in more than epochs, or UsageError if the run is past `config.train.epochs`.
    """
    saved = checkpoint.read(file)
    epochs, first = config.train.epochs, saved.members[0].config
    # Only the number of epochs may change, so both configurations are compared with the earlier number.
    if first != config.with_(train={"epochs": first.train.epochs}):
        raise ConfigError(f"The run in {folder.path} differs in its configuration: only epochs may change on resume.")
    if saved.epoch > epochs:
        raise UsageError(
            f"The run in {folder.path} is at epoch {saved.epoch}, past the requested {epochs}: give more `epochs`."
        )
    notices = []
    if file.name == checkpoint.PREVIOUS and named.is_dir():
        notices.append(f"{checkpoint.NAME} is missing (a save was interrupted): continuing from {file.name}.")
    # Rows are written before the checkpoint of their epoch, so rows of a killed run may be newer.
    rows = [of_member[: saved.epoch] for of_member in folder.read_rows(saved.seeds)]
    complete = min(map(len, rows))
    if complete < saved.epoch:
        raise CheckpointError(
            f"The metrics in {folder.path} end at epoch {complete}, but its checkpoint is from epoch "
            f"{saved.epoch}: restore metrics.jsonl, or start a new run with `init_from` {files.quoted(folder.path)}."
        )
    if saved.epoch < epochs:
        # The last epoch is always evaluated. Example: the schedule is 1, 10, 20, and the run ended at 12. A run that
        # trains to 20 without a stop has no evaluation at 12, so this evaluation is removed.
        every = config.train.eval_interval
        rows = [[r if schedule.is_evaluated(r.epoch, every) else r.unevaluated() for r in own] for own in rows]
    best, notice = _best(folder, saved.epoch)
    notices += [] if notice is None else [notice]
    models = tuple(replace(model, config=model.config.with_(train={"epochs": epochs})) for model in saved.members)
    saved = replace(saved, members=models)
    data = dataset.of_run(first, folder.path)
    return Start(saved, members(saved, rows, data), tuple(notices), best=best)


def _best(folder: RunFolder, epoch: int) -> tuple[ModelState | None, str | None]:
    """Return the saved best model, and any notice; None if it is missing, damaged, or newer than `epoch`."""
    file = folder.path / checkpoint.BEST
    if not file.exists():
        return None, None
    try:
        best = checkpoint.load(file)
    except CheckpointError as error:
        # The run itself is intact, so a damaged best model does not prevent training.
        return None, f"{file} is ignored: the next evaluated circuit becomes the best one. {error}"
    # A newer best model was saved just before a crash; its epochs and its evaluation are repeated.
    return (best if best.state.epoch <= epoch else None), None


def members(saved: Checkpoint[ModelState], rows: Sequence[Sequence[Row]], data: Dataset | None = None) -> list[Replica]:
    """Return the models of a checkpoint with their metrics so far; `data` are the samples of the run or None."""
    return [
        Replica(job.make_job(model.config, model.circuit, data), model.state, list(metrics), model.best)
        for model, metrics in zip(saved.members, rows, strict=True)
    ]
