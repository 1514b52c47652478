"""Who else can tell gradients: the engines that are here, and JAX and PyTorch where they are installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from difflogic.devices.check_gradients import Oracle, Subject
from difflogic.devices.open import place
from difflogic.engine.api import describe_engine
from difflogic.errors import DeviceError, MissingPackagesError, UsageError
from difflogic.model.circuit import ArraysByNetwork

AUTODIFF = ("jax", "torch")
"""Those that differentiate by themselves."""


@dataclass
class Oracles:
    """Those found by name, in words what they run on, and why others were not found."""

    found: dict[str, Oracle] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def find(subject: Subject, selectors: Sequence[str] = ()) -> Oracles:
    """Those of these names, and where none is named all that are here.

    Raises UsageError for an unknown name, and what keeps one that was named from being asked.
    """
    oracles = Oracles()
    for selector in selectors or ("cpu", "gpu", *AUTODIFF):
        try:
            oracle, described = _open(selector, subject)
        except (DeviceError, MissingPackagesError, UsageError) as error:
            if selectors:
                raise
            oracles.skipped[selector] = str(error)
        else:
            oracles.found[selector], oracles.described[selector] = oracle, described
    return oracles


def _open(selector: str, subject: Subject) -> tuple[Oracle, str]:
    """An oracle, and in words what it runs on."""
    if selector in AUTODIFF:
        return _autodiff(selector, subject), f"{selector} {version(selector)}, by automatic differentiation"
    engine = place(selector).engine
    return lambda asked: engine.loss_and_gradients(asked.circuit, asked.batch)[1], describe_engine(engine.info)


def _autodiff(name: str, subject: Subject) -> Oracle:
    if subject.damage is not None or subject.config.task.loss_steps:
        raise UsageError(f"The model in {name} knows neither damage nor a loss before the last step: ask cpu or gpu.")
    gradients: Callable[..., tuple[float, ArraysByNetwork]]
    try:
        if name == "jax":
            from difflogic.autodiff.jax_model import gradients
        else:
            from difflogic.autodiff.torch_model import gradients
    except ImportError as error:
        raise MissingPackagesError.of(f"The model in {name}", "bench", error.name) from error
    return lambda asked: gradients(asked.circuit, asked.batch)[1]
