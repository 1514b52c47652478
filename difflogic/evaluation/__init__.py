"""Tests of trained circuits outside the training conditions: other grids, more steps, asynchronous cells, damage."""
