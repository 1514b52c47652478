"""A trained circuit is tested beyond its training: on other grids, longer, asynchronous, damaged."""
