"""Compare measurements of hardware GPUs with numbers predicted by arithmetic: `python -m benchmarks.expected`.

Predictions follow from counted instructions, bytes and dispatches of the kernels, and from rates that the manufacturers
state, without a measurement. A prediction is confirmed if the GPU is at most a quarter slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.store import Line, load

TOLERANCE = 1.25
SINCE = "2026-11-28"
"""Date of the kernels that the predictions are for; earlier measurements are of older kernels."""
STEPS = 20
"""Number of dispatches of each fused kernel in a train step of the checkerboard."""
Value = Callable[[Line], float | None]


def field(name: str, divisor: float = 1.0) -> Value:
    return lambda line: None if line.get(name) is None else line[name] / divisor


def dispatch_us(kernel: str) -> Value:
    """Return a function that reads the microseconds per dispatch of a fused kernel from the profile in a line."""

    def value(line: Line) -> float | None:
        ms = line.get("kernels_ms", {}).get(kernel)
        return None if ms is None else 1e3 * ms / STEPS

    return value


@dataclass(frozen=True)
class Expected:
    """Predicted number, and the selection of the lines in results files that measure it."""

    what: str
    number: float | Mapping[str, float]
    """Predicted number, or numbers by a part of the GPU's name."""
    unit: str
    file: str
    value: Value
    case: str
    contender: str | None = None
    than: str | None = None
    """Contender whose time is divided by the measured time; None if the number is not a ratio."""
    must: float | None = None
    is_rate: bool = False
    """True if a larger value is better."""

    def measured(self) -> Iterator[tuple[str, str, float]]:
        """Yield GPU, date and number of the newest measurement on each GPU."""
        newest: dict[str, tuple[str, float]] = {}
        others: dict[tuple[str, str], float] = {}
        for line in load(self.file):
            if line.get("case", "life/4096") != self.case or _card(line) is None:
                continue
            card, value, run = str(_card(line)), self.value(line), f"{line['date']} {line['commit']}"
            if value is None:
                continue
            if self.than is not None and line["contender"] == self.than:
                others[card, run] = value
            if self.contender in (None, line.get("contender")):
                newest[card] = (run, value)
        for card, (run, value) in newest.items():
            if self.than is None:
                yield card, run.partition(" ")[0], value
            elif (card, run) in others:
                yield card, run.partition(" ")[0], others[card, run] / value

    def on(self, card: str) -> float | None:
        """Return the predicted number for a GPU; None if there is no prediction."""
        if isinstance(self.number, Mapping):
            return next((number for name, number in self.number.items() if name in card), None)
        return self.number


def _card(line: Line) -> str | None:
    """Return the hardware GPU of a line; None for another device."""
    if line.get("software", False) or "gpu" not in (line.get("engine"), str(line.get("contender"))[:3]):
        return None
    return str(line.get("adapter") or line["device"]).partition(",")[0].partition(" (")[0]


MS, PER_S = field("median_ms"), field("updates_per_s")
STEP_S: Value = lambda line: 1 / line["updates_per_s"]  # noqa: E731
CARD, LIFE, BOARD = "card", "simulate", "train/checkerboard"
# The longest warp takes 16 turns of 75 instructions forward and 202 backward, plus about 450 and 1,050 other
# instructions, of 2.36 ns each. A dispatch adds 3 us, the short kernels 40 us. Many models wait for the L2 cache, with
# 65 MB per model and CA step at 5.5 TB/s; before workgroups of two quarters it was 86 MB.
EXPECTED = (
    Expected("Train step, checkerboard", 0.44, "ms", "bench", MS, BOARD, must=0.5),
    Expected("- a dispatch of gate_forward", 6.9, "us", "bench", dispatch_us("gate_forward"), BOARD),
    Expected("- a dispatch of gate_backward", 13.2, "us", "bench", dispatch_us("gate_backward"), BOARD),
    Expected("- with an evaluation", 0.8, "ms", "bench", MS, "judged/checkerboard", must=1.2),
    Expected("- 64 models at once, each", 0.24, "ms", "bench", field("median_ms", 64), "population/64", must=0.25),
    Expected("- 64x64 cells", 3.8, "ms", "bench", MS, "grid/64", must=4),
    Expected("- 1024x1024 cells, batch 1", 560, "ms", "bench", MS, "huge/1024", must=700),
    Expected("Train step, 8x1500 gates, batch 256", {}, "ms", "bench", MS, "feed-forward/8x1500", must=1),
    Expected("500 epochs, the whole command", 1.5, "s", "checkerboard", field("command_s"), "checkerboard", must=2.5),
    Expected("Product of matrices of 4096x4096", 3.4, "ms", "bench", MS, "arrays/matmul-4096", must=4),
    Expected(
        "Life of 24 gates, 4096x4096", 6.3e12, "cells/s", LIFE, PER_S, "life/4096", "gpu", must=4e12, is_rate=True
    ),
    Expected("- 65536x65536", 1e13, "cells/s", LIFE, PER_S, "life/65536", "gpu", must=5e12, is_rate=True),
    Expected(
        "- generations in blocks, compared with one a dispatch",
        *(5.0, "times as fast", LIFE, STEP_S, "life/4096", "gpu", "gpu, step by step"),
        is_rate=True,
    ),
    Expected(
        "- compiled for its sizes and without checks",
        *(1.3, "times as fast", LIFE, STEP_S, "life/4096", "gpu", "gpu, plain kernels"),
        is_rate=True,
    ),
    *(
        Expected(f"{case}, kernels {name}", number, "times as fast", CARD, MS, case, fast, slow, is_rate=True)
        for case in (BOARD, "population/64")
        for name, number, fast, slow in (
            ("compiled for the sizes of their plan", 1.28, "baked", "plain"),
            ("without bounds checks too", 1.1, "baked, trusted", "baked"),
        )
    ),
    Expected("Gap between two dispatches", 2.0, "us", CARD, field("dispatch_us"), "rates"),
    Expected(
        "Memory, 1 GiB copied by a shader",
        {"H100": 3000.0, "H200": 4300.0},
        *("GB/s", CARD, field("copy_gb_per_s"), "rates"),
        is_rate=True,
    ),
)


def rows() -> Iterator[list[str]]:
    """Yield a row for each prediction and measured GPU; a prediction without a measurement is `open`."""
    for each in EXPECTED:
        must = "" if each.must is None else f"{each.must:.3g}"
        found = list(each.measured())
        if not found:
            numbers = each.number.values() if isinstance(each.number, Mapping) else [each.number]
            yield [each.what, each.unit, "open", " to ".join(f"{number:.3g}" for number in numbers), must, "open", ""]
        for card, date, value in found:
            number = each.on(card)
            expected = "" if number is None else f"{number:.3g}"
            verdict = "open: older kernels" if date < SINCE else _verdict(each, number, value)
            yield [each.what, each.unit, f"{card}, {date}", expected, must, f"{value:.3g}", verdict]


def _verdict(each: Expected, number: float | None, value: float) -> str:
    if number is None:
        return ""
    times = number / value if each.is_rate else value / number
    return "confirmed" if times <= TOLERANCE else f"refuted by a factor of {times:.1f}"


HEADERS = ["what", "unit", "on", "expected by arithmetic", "must", "measured", "arithmetic"]


if __name__ == "__main__":
    from benchmarks.report import table

    print(table(HEADERS, list(rows())))
