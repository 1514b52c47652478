"""Exports of functions, one module for each format that needs code around the gates."""
