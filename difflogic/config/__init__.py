"""Configurations of automata and agents, and requests for training, which presets and recipes complete."""
