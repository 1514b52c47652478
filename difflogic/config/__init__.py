"""Configurations of automata and agents, and training requests, which presets and recipes turn into configurations."""
