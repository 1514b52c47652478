"""difflogic: train, simplify, prove, run and ship differentiable logic cellular automata.

    import difflogic
    config = difflogic.presets.checkerboard(small=True)
    run = difflogic.Trainer(config, difflogic.open_engine("auto")).run(epochs=100)

Names are loaded on first use, so that `import difflogic` stays light.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "Batch": "difflogic.batch",
    "Circuit": "difflogic.circuit",
    "Config": "difflogic.config",
    "OptimizerState": "difflogic.engine",
    "Trainer": "difflogic.train.loop",
    "Run": "difflogic.train.loop",
    "evaluate": "difflogic.train.evaluation.evaluate",
    "open_engine": "difflogic.train.placement",
    "presets": "difflogic.presets",
    "render": "difflogic.train.evaluation.render",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'difflogic' has no attribute {name!r}")
    module = importlib.import_module(_EXPORTS[name])
    return module if name == "presets" else getattr(module, name)
