"""Allowed values of options. This module imports only `typing`, so that `--help` is quick."""

from typing import Literal, get_args

Placing = Literal["auto", "gpu", "cpu", "sticky"]
PLACINGS: tuple[Placing, ...] = get_args(Placing)
"""Strategies by which `devices.choose` selects an engine if the user does not name one."""
RECIPES = ("robust", "paper")
CLIPS = ("element", "norm")
ALGORITHMS = ("ppo", "sac")
ACTORS = ("logic", "automaton", "mlp")
"""Kinds of agents: layers of gates, an automaton of gates, or dense layers."""
METHODS = ("grid", "random", "optuna", "halving")
"""Search methods that choose the trials of a sweep."""
METRICS = ("tts", "hard_loss", "gates", "return")
"""Metrics by which the trials of a sweep are compared."""
STARTS = ("random", "boards", "seed", "zeros", "picture")
"""Kinds of initial states; `TaskConfig.start` describes them."""
COLORS = (2, 8, 64)
"""Supported numbers of colours of a target image; `config.picture_file` explains them."""
EFFORTS = {"normal": 1, "high": 10}
"""Mapping from effort levels of `simplify` to factors of its search time."""
DRAWINGS = ("rollout", "gates", "loss")
"""Kinds of images that `evaluation.render` can draw for a run."""
EXPORTS = {
    "c": "a C99 header, 64 cells per word, and a demo",
    "verilog": "a cell, a grid and a self-checking test bench",
    "vhdl": "the same in VHDL-2008",
    "blif": "for logic synthesis",
    "aiger": "binary AIGER, for ABC and model checkers",
    "svg": "a diagram",
    "digitaljs": "for the DigitalJS simulator in the browser",
    "golly": "a rule and a pattern for Golly",
    "wgsl": "a WebGPU compute shader, 32 cells per word",
    "html": "one web page that runs it, without a network",
    "numpy": "a Python module that needs NumPy only",
    "json": "circuit.json, as in a run folder: every gate",
}
"""Mapping from export formats, which `circuits.export.formats` implements, to descriptions."""
BOUNDARIES = ("zero", "periodic")
