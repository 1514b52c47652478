"""Tests of trained circuits beyond their training: on other grids, for more steps, asynchronously, with damage."""
