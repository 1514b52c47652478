"""Describe the growth of times with the size of cases, in numbers and in sentences."""

import itertools
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from difflogic.bench.cases import SCALING
from difflogic.bench.results import Line, Results


@dataclass(frozen=True)
class Curve:
    """Times of an engine for growing sizes along one axis; each point has four times the work of the previous."""

    axis: str
    engine: str
    sizes: tuple[int, ...]
    ms: tuple[float, ...]
    growth: tuple[float, ...]
    """Time of each point relative to the previous point (see `ratio`); 4 means linear growth."""


def conclusions(results: Results) -> Iterator[str]:
    """Yield sentences on the growth of times, on sizes from which a GPU is faster, and on the cost of logging."""
    for curve in curves(results):
        growth = ", ".join(f"{each:.2f}" for each in curve.growth)
        yield f"4 times the {curve.axis} on {results.shown(curve.engine)} costs {growth} times as much"
    yield from overtaking(results)
    for name in results.engines:
        if (share := logging_share(results, name)) is not None:
            yield f"Logging every epoch on {results.shown(name)} keeps {share:.0%} of the speed"


def ratio(new: Line, old: Line) -> float:
    """Return the median of the ratios of new to old time, one ratio per round."""
    after: list[float] = new["rounds_ms"]
    before: list[float] = old["rounds_ms"]
    # A slow machine in one round slows both cases. In an interrupted run, some cases lack the last round.
    return statistics.median(a / b for a, b in zip(after, before, strict=False))


def logging_share(results: Results, engine: str) -> float | None:
    """Return the speed of training that logs every epoch relative to normal training; None if not measured."""
    rows = {line["case"]: line for line in results.cases if line["engine"] == engine}
    try:
        return ratio(rows["train/checkerboard"], rows["logged/checkerboard"])
    except KeyError:
        return None


def curves(results: Results) -> list[Curve]:
    """Return all curves with at least two measured points."""
    series = {key: lines for key, lines in _series(results).items() if key[1][:-1] in SCALING and len(lines) > 1}
    return [_curve(prefix[:-1], engine, lines) for (engine, prefix), lines in series.items()]


def _series(results: Results) -> dict[tuple[str, str], dict[int, Line]]:
    """Group the rows of cases that differ only in size, by (engine, name without the size), then by size."""
    series: dict[tuple[str, str], dict[int, Line]] = {}
    for line in results.cases:
        prefix, size = re.split("(?<=[/-])(?=[^/-]*$)", line["case"])
        if prefix[:-1] in SCALING or prefix.startswith("arrays/"):
            series.setdefault((line["engine"], prefix), {})[int(size)] = line
    return series


def _curve(axis: str, engine: str, by_size: dict[int, Line]) -> Curve:
    sizes = tuple(sorted(by_size))
    lines = [by_size[size] for size in sizes]
    growth = tuple(ratio(new, old) for old, new in itertools.pairwise(lines))
    return Curve(axis, engine, sizes, tuple(line["median_ms"] for line in lines), growth)


def overtaking(results: Results) -> list[str]:
    """Return one sentence per curve that was measured on both a GPU and the CPU engine."""
    series, sentences = _series(results), []
    for (engine, prefix), lines in series.items():
        others, what = series.get(("cpu", prefix), {}), prefix[:-1]
        sizes = sorted(lines.keys() & others.keys())
        if results.engines[engine]["engine"] == "gpu" and sizes:
            faster = [ratio(lines[size], others[size]) < 1 for size in sizes]
            words = "A train step" if what in SCALING else what.removeprefix("arrays/").capitalize()
            overtakes = _overtakes(SCALING.get(what, "size"), sizes, faster)
            sentences.append(f"{words} on {results.shown(engine)} {overtakes}")
    return sentences


def _overtakes(axis: str, sizes: list[int], faster: list[bool]) -> str:
    """Return the predicate of a sentence on the measured size from which the GPU is faster than the CPU."""
    # The largest size at which the GPU is slower is decisive, even if the GPU is faster at smaller sizes.
    slower = max((index for index, each in enumerate(faster) if not each), default=-1)
    if slower == len(sizes) - 1:
        return f"does not overtake cpu up to {axis} {sizes[-1]}, the largest measured"
    if slower < 0:
        return f"is faster than cpu from {axis} {sizes[0]} on, the smallest measured"
    return f"overtakes cpu between {axis} {sizes[slower]} and {sizes[slower + 1]}"
