"""How the cost grows with the work, in numbers and sentences."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from difflogic.bench.cases import SCALING
from difflogic.bench.results import Line, Results


@dataclass(frozen=True)
class Curve:
    """One engine along one axis; each point is four times the work of the one before."""

    axis: str
    engine: str
    sizes: tuple[int, ...]
    ms: tuple[float, ...]
    growth: tuple[float, ...]
    """The cost of each point over that of the one before, as `ratio` has it: 4 is linear."""


def conclusions(results: Results) -> Iterator[str]:
    """What several cases say together."""
    for curve in curves(results):
        growth = ", ".join(f"{each:.2f}" for each in curve.growth)
        yield f"4 times the {curve.axis} on {results.shown(curve.engine)} costs {growth} times as much"
    yield from overtaking(results)
    for name in results.engines:
        if (share := logging_share(results, name)) is not None:
            yield f"Logging every epoch on {results.shown(name)} keeps {share:.0%} of the speed"


def ratio(new: Line, old: Line) -> float:
    """The median of the ratios round by round: two cases of one heat were measured next to each other in each."""
    after: list[float] = new["rounds_ms"]
    before: list[float] = old["rounds_ms"]
    # Round by round, since both cases met the same machine in each: if it was slow in one round, both were. A run that
    # is interrupted leaves some cases without the last round.
    return statistics.median(a / b for a, b in zip(after, before, strict=False))


def logging_share(results: Results, engine: str) -> float | None:
    """The share of its speed that training keeps where every epoch is logged; None where that was not measured."""
    found = {line["case"]: line for line in results.cases if line["engine"] == engine}
    try:
        return ratio(found["train/checkerboard"], found["logged/checkerboard"])
    except KeyError:
        return None


def curves(results: Results) -> list[Curve]:
    """Every curve of at least two points."""
    points: dict[tuple[str, str], dict[int, Line]] = {}
    for line in results.cases:
        group, _, size = line["case"].partition("/")
        if group in SCALING:
            points.setdefault((group, line["engine"]), {})[int(size)] = line
    return [_curve(axis, engine, found) for (axis, engine), found in points.items() if len(found) > 1]


def _curve(axis: str, engine: str, found: dict[int, Line]) -> Curve:
    sizes = tuple(sorted(found))
    lines = [found[size] for size in sizes]
    growth = tuple(ratio(new, old) for old, new in itertools.pairwise(lines))
    return Curve(axis, engine, sizes, tuple(line["median_ms"] for line in lines), growth)


def overtaking(results: Results) -> list[str]:
    """A sentence for every engine on a GPU and all that it and the CPU engine were measured at in several sizes."""
    found = {(line["engine"], line["case"]): line for line in results.cases}
    asked = [
        *((each.engine, f"{each.axis}/", each.sizes, "A train step", SCALING[each.axis]) for each in curves(results)),
        *_array_sizes(results),
    ]
    sentences = []
    for engine, prefix, measured, what, axis in asked:
        is_gpu = results.engines[engine]["engine"] == "gpu"
        sizes = [size for size in measured if is_gpu and ("cpu", f"{prefix}{size}") in found]
        faster = [ratio(*(found[name, f"{prefix}{size}"] for name in (engine, "cpu"))) < 1 for size in sizes]
        if sizes:
            sentences.append(f"{what} on {results.shown(engine)} {_overtakes(axis, sizes, faster)}")
    return sentences


def _array_sizes(results: Results) -> Iterator[tuple[str, str, tuple[int, ...], str, str]]:
    """Engine, beginning of the cases' names, sizes, and words for the operation and for its size."""
    sizes: dict[tuple[str, str], list[int]] = {}
    for line in results.cases:
        case, _, size = line["case"].rpartition("-")
        if case.startswith("arrays/"):
            sizes.setdefault((line["engine"], case), []).append(int(size))
    for (engine, case), measured in sizes.items():
        what = case.removeprefix("arrays/").capitalize()
        yield engine, f"{case}-", tuple(sorted(measured)), what, "size"


def _overtakes(axis: str, sizes: list[int], faster: list[bool]) -> str:
    """A sentence that says from which of the measured sizes on all are faster."""
    # A size in the middle where it is slower again counts: it overtakes only after the last of those.
    slower = max((index for index, each in enumerate(faster) if not each), default=-1)
    if slower == len(sizes) - 1:
        return f"does not overtake cpu up to {axis} {sizes[-1]}, the largest measured"
    if slower < 0:
        return f"is faster than cpu from {axis} {sizes[0]} on, the smallest measured"
    return f"overtakes cpu between {axis} {sizes[slower]} and {sizes[slower + 1]}"
