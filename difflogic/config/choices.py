"""Names that users choose from, in one place. It imports no other module, so that `--help` can show them at once."""

from __future__ import annotations

from typing import Literal, get_args

Placing = Literal["auto", "gpu", "cpu", "sticky"]
PLACINGS: tuple[Placing, ...] = get_args(Placing)
"""How the engine is chosen where none is asked for: `devices.choose`."""
RECIPES = ("robust", "paper")
CLIPS = ("element", "norm")
PRECISIONS = ("float32", "f16-storage")
"""How the GPU keeps gate values for the backward pass."""
ALGORITHMS = ("ppo", "sac")
"""How agents learn."""
SUPERVISED = "supervised"
"""How classifiers learn, which have a table in place of an environment."""
ACTORS = ("logic", "automaton", "mlp")
"""What agents are made of: layers of gates, an automaton of gates, or dense layers."""
METHODS = ("grid", "random", "optuna", "halving")
"""How a sweep chooses its trials."""
METRICS = ("tts", "hard_loss", "gates", "return")
"""A sweep compares trials by one of these."""
STARTS = ("random", "boards", "seed", "zeros", "picture")
"""What a grid may start from: see `config.task`."""
COLORS = (2, 8, 64)
"""How many colours a picture may have: see `config.picture_file`."""
EFFORTS = {"normal": 1, "high": 10}
"""How long `simplify` searches, beside normal."""
DRAWINGS = ("rollout", "gates", "loss")
"""What can be drawn of a run: `evaluation.render`."""
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
"""What a circuit can be exported to, and what for: `circuits.export.formats`."""
BOUNDARIES = ("zero", "periodic")
"""What lies outside a grid."""
