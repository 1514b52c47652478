"""Simulation of a hard circuit on one large grid: engines, initial states, and result files."""
