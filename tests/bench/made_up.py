"""Cases that take milliseconds, and a results file."""

from typing import Any

from difflogic.bench.cases import Case
from difflogic.bench.results import FORMAT, Results
from tests.train.tiny import tiny_config

TINY = (
    Case("train/tiny", "train", tiny_config(), quick=True),
    Case("logged/tiny", "logged", tiny_config(), every_engine=False),
    Case("judged/tiny", "judged", tiny_config(fire_rate=0.6), every_engine=False),
    Case("hard/tiny", "hard", tiny_config(), quick=True),
    Case("batch/3", "train", tiny_config(), every_engine=False),
    Case("batch/12", "train", tiny_config(batch=12), every_engine=False),
    Case("population/2", "train", tiny_config(), models=2, every_engine=False),
)


def line(case: str, median: float, engine: str = "cpu", **more: Any) -> dict[str, Any]:
    """One case of a results file, its rounds within 10 % of the median."""
    rounds = {"rounds": 3, "rounds_ms": [0.9 * median, median, 1.1 * median]}
    times = {"median_ms": median, "min_ms": 0.9 * median, "max_ms": 1.1 * median, **rounds}
    return {"case": case, "engine": engine, **times, "gate_evaluations": 100, **more}


def make_results() -> Results:
    engine = {"engine": "cpu", "adapter": "Processor 9", "backend": "", "driver": "Numba 1"}
    engine |= {"timestamps": None, "copy_gb_per_s": 10.0}
    machine = {"processor": "Processor 9", "cores": 2, "system": "Linux", "load_1min": 0.1}
    cases = [line("train/a", 10.0), line("grid/16", 1.0), line("grid/32", 4.0), line("grid/64", 20.0)]
    engines = {"cpu": engine}
    return Results({"format": FORMAT, "machine": machine, "engines": engines, "cases": cases, "skipped": []})
