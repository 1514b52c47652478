"""How the passes of simplification are told as they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from difflogic.circuits.simplify import Step


def tell(step: Step) -> None:
    """A line on standard error."""
    click.echo(f"... {step.name}: {step.gates[1]} gates, {step.seconds:.1f} s", err=True)
