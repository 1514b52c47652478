"""Test trained circuits outside their training conditions: other grids, more steps, asynchronous cells, damage."""
