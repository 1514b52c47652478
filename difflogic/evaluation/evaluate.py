"""Run all tests on a trained run, with results in `evaluation.json`.

    {"format": "difflogic-evaluation", "version": 1, "difflogic": "0.1.0", "run": "runs/NAME", "name": "checkerboard",
     "seed": 23, "epoch": 500, "engine": "cpu: ...", "starts": 64, "quick": false,
     "measures": [{"key": "accuracy", "title": "...", "text": "...", "values": {...}, "paper": "", "met": null,
                   "curve": [...]}, ...],
     "gates": {"gates": 3040, "active": 21, "undecided": 68, "paper_active": 22, "layers": [
        {"name": "perceive 0", "gates": 128, "active": 0, "undecided": 0, "kinds": [16 numbers]}, ...]}}

Tests that do not apply to the run's task are omitted. The text of a measure is for readers, and its wording may change.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from difflogic.circuits.export.text import Files
from difflogic.circuits.synthesis.function import live_gates
from difflogic.config.dataset import Dataset
from difflogic.engine.api import Engine, describe_engine
from difflogic.evaluation import samples, trained_circuit
from difflogic.evaluation.faults import CURVES
from difflogic.evaluation.measure import Measure
from difflogic.evaluation.paper import published
from difflogic.evaluation.rehearsal import EvaluationContext
from difflogic.evaluation.suite import TESTS, Test
from difflogic.evaluation.trained_circuit import TrainedCircuit, engine_of
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.statistics import Layer, census
from difflogic.runs import plots
from difflogic.system.brief import brief
from difflogic.version import __version__

FORMAT, VERSION = "difflogic-evaluation", 1
NAME, FAULTS = "evaluation.json", "faults.png"
STARTS, QUICK_STARTS = 64, 8


@dataclass(frozen=True, eq=False)
class RunEvaluation:
    """Results of evaluating a run."""

    trained: TrainedCircuit
    engine: str
    starts: int
    quick: bool
    measures: tuple[Measure, ...]
    layers: tuple[Layer, ...]

    __repr__ = brief

    @property
    def fault_curves(self) -> list[tuple[str, Sequence[float], Sequence[float]]]:
        """Curve of each fault test as `(key of the measure, numbers or probabilities of faults, accuracies)`."""
        curves = {measure.key: measure.values for measure in self.measures if measure.key in CURVES}
        return [(key, [float(name) for name in values], list(values.values())) for key, values in curves.items()]

    @property
    def live_gates(self) -> int:
        return live_gates(CellNetlist.of_run(self.trained.circuit, self.trained.config))

    @property
    def gates(self) -> dict[str, Any]:
        """Numbers of soft gates, in total and per layer, as in `evaluation.json`."""
        counts = {name: sum(getattr(layer, name) for layer in self.layers) for name in ("gates", "active", "undecided")}
        paper = published(self.trained.config).active_gates
        return counts | {"paper_active": paper, "layers": [asdict(layer) for layer in self.layers]}

    def to_dict(self) -> dict[str, Any]:
        trained = self.trained
        head = {"format": FORMAT, "version": VERSION, "difflogic": __version__, "run": str(trained.path)}
        head |= {"name": trained.config.name, "seed": trained.config.seed, "epoch": trained.epoch}
        head |= {"engine": self.engine, "starts": self.starts, "quick": self.quick}
        return head | {"measures": [measure.to_dict() for measure in self.measures], "gates": self.gates}

    def files(self) -> Files:
        """Return a mapping from file name to contents, for the run folder."""
        contents: Files = {NAME: json.dumps(self.to_dict(), allow_nan=False) + "\n"}
        if self.fault_curves:
            contents[FAULTS] = plots.accuracy_png(self.fault_curves)
        return contents


def evaluate(
    run: Path | str,
    engine: Engine | None = None,
    *,
    starts: int | None = None,
    quick: bool = False,
    member: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
    data: Dataset | None = None,
    settings: Mapping[str, Any] | None = None,
    faults: Iterable[Test] = (),
) -> RunEvaluation:
    """Test a run's hard circuit with all tests that apply to its task; see `difflogic.actions.evaluate`.

    Initial states are sampled from a separate random stream of the run's seed. Raises UsageError or CheckpointError.
    """
    trained = trained_circuit.load(Path(run), member)
    engine = engine_of(trained) if engine is None else engine
    count = starts or (QUICK_STARTS if quick else STARTS)
    context, measures = EvaluationContext(engine, trained, count, quick, data, settings or {}), []
    # Check samples and settings before the first test, which may take minutes.
    samples.check(context)
    for test in (*TESTS, *faults):
        measure = test(context)
        if measure is not None:
            measures.append(measure)
            tell(f"{measure.title}: {measure.text}")
    return RunEvaluation(trained, describe_engine(engine.info), count, quick, tuple(measures), census(trained.circuit))
