"""difflogic: train, simplify, prove, run and ship differentiable logic cellular automata.

    import difflogic
    run = difflogic.fit("checkerboard-small", epochs=100)
    run.netlist.rollout(grids, steps=20)

Modules are imported when a name is first used, so that `import difflogic` is fast. Type checkers see all names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from difflogic.model import framed as _framed
from difflogic.version import __version__ as __version__

if TYPE_CHECKING:
    from difflogic.actions.build import build as build
    from difflogic.actions.evaluate import evaluate as evaluate
    from difflogic.actions.export import export as export
    from difflogic.actions.prove import prove as prove
    from difflogic.actions.simplify import simplify as simplify
    from difflogic.circuits.readers.source import load as load
    from difflogic.circuits.readers.source import load_function as load_function
    from difflogic.config import presets as presets
    from difflogic.config.dataset import Dataset as Dataset
    from difflogic.config.own_task import Task as Task
    from difflogic.config.own_task import circuit as circuit
    from difflogic.config.own_task import setting as setting
    from difflogic.config.schema import Config as Config
    from difflogic.config.table import LabelledTable as LabelledTable
    from difflogic.config.table import load_table as load_table
    from difflogic.devices.device import Device as Device
    from difflogic.devices.open import open_engine as open_engine
    from difflogic.engine.batch import Batch as Batch
    from difflogic.engine.job import OptimizerState as OptimizerState
    from difflogic.evaluation.render import render as render
    from difflogic.model.cell_netlist import CellNetlist as CellNetlist
    from difflogic.model.circuit import Circuit as Circuit
    from difflogic.model.function_netlist import FunctionNetlist as FunctionNetlist
    from difflogic.page.export import training_page as training_page
    from difflogic.serve.sweep import resume_sweep as resume_sweep
    from difflogic.serve.sweep import sweep as sweep
    from difflogic.train.observer import Observer as Observer
    from difflogic.train.restarts import solve as solve
    from difflogic.train.run import Run as Run
    from difflogic.train.run import load_run as load_run
    from difflogic.train.run_request import fit as fit
    from difflogic.train.run_request import harden as harden
    from difflogic.train.trainer import Trainer as Trainer

_EXPORTS = {
    "Batch": "difflogic.engine.batch",
    "CellNetlist": "difflogic.model.cell_netlist",
    "Circuit": "difflogic.model.circuit",
    "Config": "difflogic.config.schema",
    "Dataset": "difflogic.config.dataset",
    "Device": "difflogic.devices.device",
    "FunctionNetlist": "difflogic.model.function_netlist",
    "LabelledTable": "difflogic.config.table",
    "Observer": "difflogic.train.observer",
    "OptimizerState": "difflogic.engine.job",
    "Task": "difflogic.config.own_task",
    "Trainer": "difflogic.train.trainer",
    "Run": "difflogic.train.run",
    "circuit": "difflogic.config.own_task",
    "evaluate": "difflogic.actions.evaluate",
    "export": "difflogic.actions.export",
    "fit": "difflogic.train.run_request",
    "harden": "difflogic.train.run_request",
    "load": "difflogic.circuits.readers.source",
    "load_function": "difflogic.circuits.readers.source",
    "load_run": "difflogic.train.run",
    "load_table": "difflogic.config.table",
    "open_engine": "difflogic.devices.open",
    "presets": "difflogic.config.presets",
    "prove": "difflogic.actions.prove",
    "render": "difflogic.evaluation.render",
    "resume_sweep": "difflogic.serve.sweep",
    "setting": "difflogic.config.own_task",
    "build": "difflogic.actions.build",
    "simplify": "difflogic.actions.simplify",
    "solve": "difflogic.train.restarts",
    "sweep": "difflogic.serve.sweep",
    "training_page": "difflogic.page.export",
}

__all__ = ["__version__", *_EXPORTS]


if not TYPE_CHECKING:  # for type checkers, any name, even a misspelt one, would have the type Any

    def __getattr__(name: str) -> object:
        if name not in _EXPORTS:
            raise AttributeError(f"module 'difflogic' has no attribute {name!r}")
        module = importlib.import_module(_EXPORTS[name])
        return module if name == "presets" else getattr(module, name)


def _page(circuit: object) -> str | None:
    """Return the HTML page that a notebook displays for a circuit, or None; imports the export module lazily."""
    html: str | None = importlib.import_module("difflogic.circuits.export.formats").page(circuit)
    return html


_framed.page_of = _page


def __dir__() -> list[str]:
    return sorted(__all__)
