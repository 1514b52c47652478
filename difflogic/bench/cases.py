"""Define and select the benchmark cases."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Literal

from difflogic.bench.arrays import CASES as ARRAYS
from difflogic.bench.arrays import ArrayCase
from difflogic.bench.work import Work, work_of
from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.errors import UsageError

Kind = Literal["train", "logged", "judged", "hard"]

UNITS: dict[Kind, str] = {
    "train": "train step",
    "logged": "train step, its metrics brought home as for a run that logs every epoch",
    "judged": "train step and hard evaluation",
    "hard": "hard evaluation",
}
"""Mapping from kinds of cases to descriptions of one repetition."""


@dataclass(frozen=True)
class Case:
    """Benchmark case: a configuration, and the part of its training that is timed, `kind`."""

    name: str
    """Name of the form `GROUP/CASE`."""
    kind: Kind
    config: Config
    models: int = 1
    """Number of models that are trained together; times are per step of all models."""
    every_engine: bool = True
    """False if the case is skipped on the reference engine, where it would take minutes."""
    quick: bool = False
    """True if the case is selected by --quick."""
    gpu_only: bool = False
    """True if the case runs only on GPUs."""
    once: bool = False
    """True if the case runs only if selected, with a single timed step on a software GPU, where it takes minutes."""
    asked: bool = False
    """True if the case runs only if selected by name, group or `*`, since it takes minutes on a software GPU."""

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]

    @property
    def turn_group(self) -> str:
        """Name of the group of cases timed in turn: those of a scaling curve, or all train steps outside any curve."""
        # The points of a curve are compared with each other, so they must be measured under equal conditions.
        if self.group in SCALING:
            return self.group
        return "steps" if self.kind in ("train", "logged") and not self.once else self.name

    @property
    def unit(self) -> str:
        return UNITS[self.kind]

    @property
    def work(self) -> Work:
        return work_of(self.config)

    @property
    def evaluations(self) -> int:
        """Number of gate evaluations per repetition, for all models together."""
        soft = 0 if self.kind == "hard" else self.work.soft_evaluations
        hard = self.work.hard_evaluations if self.kind in ("judged", "hard") else 0
        return self.models * (soft + hard)


EXPERIMENTS = ("game-of-life", "checkerboard-async", "lizard", "colored-g")
"""Names of presets other than the checkerboards that have a case for their train step."""

SCALING = {"grid": "grid side", "batch": "batch", "population": "models"}
"""Mapping from groups that are curves to the varied quantity; each point has four times the work of the previous."""


def all_cases() -> tuple[Case | ArrayCase, ...]:
    """Return all benchmark cases in the order of measurement."""
    # Most cases are the paper's checkerboard, so that curves can be compared.
    board, small = presets.checkerboard(small=False), presets.checkerboard(small=True)
    return (
        Case("train/checkerboard", "train", board, quick=True),
        Case("train/checkerboard-small", "train", small, quick=True),
        Case("logged/checkerboard", "logged", board, every_engine=False),
        Case("judged/checkerboard", "judged", board, every_engine=False),
        Case("hard/checkerboard", "hard", board, quick=True),
        *(Case(f"train/{name}", "train", presets.get(name), every_engine=False) for name in EXPERIMENTS),
        *(
            Case(f"grid/{side}", "train", board.with_(task={"height": side, "width": side}), every_engine=False)
            for side in (16, 32, 64)
        ),
        *(
            Case(f"batch/{size}", "train", board.with_(train={"batch": size}), every_engine=False)
            for size in (2, 8, 32)
        ),
        *(
            Case(f"population/{models}", "train", board, models, every_engine=False, asked=models > 16)
            for models in (1, 4, 16, 64)
        ),
        *(
            Case(f"candidates/{k}", "train", board.with_(model={"candidates": k}), every_engine=False, asked=True)
            for k in (1, 2, 4, 8)
        ),
        Case(
            "huge/1024",
            "train",
            board.with_(task={"height": 1024, "width": 1024}, train={"batch": 1, "probes": 1}),
            gpu_only=True,
            once=True,
        ),
        *ARRAYS,
    )


def select(patterns: Sequence[str], quick: bool) -> tuple[Case | ArrayCase, ...]:
    """Return the cases that match any of the patterns, each the name of a group or a pattern (fnmatch) for names.

    Without patterns, return the cases of --quick if `quick`, otherwise all cases except those that take minutes on a
    software GPU. Raises UsageError for a pattern without matches.
    """
    cases = all_cases()
    for pattern in patterns:
        if not any(_fits(case, pattern) for case in cases):
            raise UsageError(f"Unknown case {pattern!r}: expected one of {', '.join(case.name for case in cases)}.")
    if patterns:
        return tuple(case for case in cases if any(_fits(case, pattern) for pattern in patterns))
    # With --quick, only the quick cases are selected, otherwise all cases that do not take minutes on a software GPU.
    return tuple(case for case in cases if case.quick or not (quick or case.once or case.asked))


def _fits(case: Case | ArrayCase, pattern: str) -> bool:
    return pattern == case.group or fnmatch(case.name, pattern)
