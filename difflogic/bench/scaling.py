"""How the cost grows: numbers and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from difflogic.bench.cases import SCALING
from difflogic.bench.results import Results


@dataclass(frozen=True)
class Curve:
    """One engine along one axis; each point is four times the work of the one before."""

    axis: str
    engine: str
    sizes: tuple[int, ...]
    ms: tuple[float, ...]

    @property
    def growth(self) -> tuple[float, ...]:
        """The cost of each point over that of the one before: 4 is linear."""
        return tuple(new / old for old, new in zip(self.ms, self.ms[1:], strict=False))


def curves(results: Results) -> list[Curve]:
    """Every curve of at least two points."""
    points: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for line in results.cases:
        group, _, size = line["case"].partition("/")
        if group in SCALING:
            points.setdefault((group, line["engine"]), []).append((int(size), line["median_ms"]))
    return [
        Curve(axis, engine, *map(tuple, zip(*sorted(found), strict=True)))
        for (axis, engine), found in points.items()
        if len(found) > 1
    ]


def draw(results: Results, path: Path) -> None:
    """A panel per axis, both scales logarithmic, with a line of linear cost."""
    from matplotlib.figure import Figure

    found = curves(results)
    axes = [axis for axis in SCALING if any(curve.axis == axis for curve in found)]
    figure = Figure(figsize=(4.5 * max(1, len(axes)), 4), layout="constrained")
    panels = figure.subplots(1, max(1, len(axes)), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=False):
        _draw_panel(panel, axis, [curve for curve in found if curve.axis == axis])
    figure.savefig(path, dpi=120)


def _draw_panel(panel: Any, axis: str, found: list[Curve]) -> None:
    for curve in found:
        work = [4**index for index in range(len(curve.sizes))]
        (line,) = panel.plot(curve.sizes, curve.ms, "o-", label=curve.engine)
        panel.plot(curve.sizes, [curve.ms[0] * each for each in work], ":", color=line.get_color())
    panel.set(xscale="log", yscale="log", xlabel=SCALING[axis], ylabel="ms per train step")
    ticks = sorted({size for curve in found for size in curve.sizes})
    panel.set_xticks(ticks, [str(tick) for tick in ticks])
    panel.minorticks_off()
    panel.set_title("dotted: cost grows as the work", fontsize=8)
    panel.legend()
