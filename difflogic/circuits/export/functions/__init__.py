"""Exports of functions, one module per format that needs code around the gates."""
