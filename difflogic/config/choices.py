"""Names among which users choose. This module imports only typing, so that `--help` is quick."""

from typing import Literal, get_args

Placing = Literal["auto", "gpu", "cpu", "sticky"]
PLACINGS: tuple[Placing, ...] = get_args(Placing)
"""Strategies by which `devices.choose` selects an engine if the user names none."""
RECIPES = ("robust", "paper")
CLIPS = ("element", "norm")
ALGORITHMS = ("ppo", "sac")
ACTORS = ("logic", "automaton", "mlp")
"""Kinds of agents: layers of gates, an automaton of gates, or dense layers."""
METHODS = ("grid", "random", "optuna", "halving")
"""Ways to choose the trials of a sweep."""
METRICS = ("tts", "hard_loss", "gates", "return")
"""Metrics that compare trials."""
STARTS = ("random", "boards", "seed", "zeros", "picture")
"""Kinds of initial states, which `config.task` describes."""
COLORS = (2, 8, 64)
"""Supported numbers of colours of an image, see `config.picture_file`."""
EFFORTS = {"normal": 1, "high": 10}
"""Factors of the search time of `simplify`, by effort."""
DRAWINGS = ("rollout", "gates", "loss")
"""Images that `evaluation.render` draws of a run."""
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
"""Export formats with descriptions; `circuits.export.formats` implements them."""
BOUNDARIES = ("zero", "periodic")
