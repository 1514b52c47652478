"""Provide five example tasks; `adder` is the shortest to read."""
