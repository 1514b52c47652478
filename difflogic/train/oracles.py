"""Who else can tell gradients: the engines that are here, and the rival in JAX where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from difflogic.circuit import ArraysByNetwork
from difflogic.engine import Engine
from difflogic.errors import DeviceError
from difflogic.train.gradients_check import Oracle, Subject
from difflogic.train.placement import place
from difflogic.train.summary import describe_engine

JAX = "JAX"
_RIVALS = "benchmarks.rivals"


@dataclass
class Oracles:
    """Those found by name, in words what they run on, and why others were not found."""

    found: dict[str, Oracle] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def find(subject: Subject, selectors: Sequence[str] = ("cpu", "gpu")) -> Oracles:
    """Those for a subject; an engine that cannot be opened is skipped with its reason. Raises UsageError."""
    oracles = Oracles()
    for selector in selectors:
        try:
            engine = place(selector).engine
        except DeviceError as error:
            oracles.skipped[selector] = str(error)
            continue
        oracles.found[selector] = _of(engine)
        oracles.described[selector] = describe_engine(engine.info)
    if subject.damage is not None or subject.config.task.loss_steps:
        oracles.skipped[JAX] = "The rival knows neither damage nor a loss before the last step."
        return oracles
    try:
        oracles.found[JAX] = _jax()
        oracles.described[JAX] = f"the rival in {_RIVALS}, by automatic differentiation"
    except ImportError as error:
        oracles.skipped[JAX] = f"It needs the package jax, and {_RIVALS} of the checkout: {error}."
    return oracles


def _of(engine: Engine) -> Oracle:
    return lambda subject: engine.loss_and_gradients(subject.circuit, subject.batch)[1]


def _jax() -> Oracle:
    """Raises ImportError."""
    training = importlib.import_module(f"{_RIVALS}.jax_training")
    plain = importlib.import_module(f"{_RIVALS}.jax_plain")

    def oracle(subject: Subject) -> ArraysByNetwork:
        gradients: ArraysByNetwork = training.gradients(plain, subject.circuit, subject.batch)[1]
        return gradients

    return oracle
