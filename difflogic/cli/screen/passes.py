"""The passes of simplification are reported as they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from difflogic.cli.screen import sinks

if TYPE_CHECKING:
    from difflogic.circuits.synthesis.simplify import PassReport


def show(step: PassReport) -> None:
    """A line on standard error."""
    stopped = ", stopped by Ctrl-C" if step.stopped else ""
    sinks.working(f"{step.name}: {step.gates[1]} gates, {step.seconds:.1f} s{stopped}")


def tell(step: PassReport) -> None:
    """The line; and Ctrl-C ends all."""
    show(step)
    if step.stopped:
        raise KeyboardInterrupt
