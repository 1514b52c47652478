"""The growth of the cost is measured, as numbers and a picture."""

from __future__ import annotations

import io
import itertools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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


def ratio(new: Line, old: Line) -> float:
    """The median of the ratios round by round: two cases of one heat were measured next to each other in each."""
    after: list[float] = new["rounds_ms"]
    before: list[float] = old["rounds_ms"]
    # Round by round, since both cases met the same machine in each: if it was slow in one round, both were.
    return statistics.median(a / b for a, b in zip(after, before, strict=True))


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
            sentences.append(f"{what} on {engine} {_overtakes(axis, sizes, faster)}")
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


def draw(results: Results, kind: str) -> bytes:
    """A picture of a `kind` such as png: a panel per axis, both scales logarithmic, with a line of linear cost."""
    from matplotlib.figure import Figure

    found = curves(results)
    axes = [axis for axis in SCALING if any(curve.axis == axis for curve in found)]
    figure = Figure(figsize=(4.5 * max(1, len(axes)), 4), layout="constrained")
    panels = figure.subplots(1, max(1, len(axes)), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=False):
        _draw_panel(panel, axis, [curve for curve in found if curve.axis == axis])
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=120)
    return buffer.getvalue()


def _draw_panel(panel: Any, axis: str, found: list[Curve]) -> None:
    for curve in found:
        # Each size is four times the work of the one before, whatever the axis is.
        work = [4**index for index in range(len(curve.sizes))]
        (line,) = panel.plot(curve.sizes, curve.ms, "o-", label=curve.engine)
        panel.plot(curve.sizes, [curve.ms[0] * each for each in work], ":", color=line.get_color())
    panel.set(xscale="log", yscale="log", xlabel=SCALING[axis], ylabel="ms per train step")
    ticks = sorted({size for curve in found for size in curve.sizes})
    panel.set_xticks(ticks, [str(tick) for tick in ticks])
    panel.minorticks_off()
    panel.set_title("dotted: cost grows as the work", fontsize=8)
    panel.legend()
