"""Simplification of circuits, and proofs that the results are equivalent."""
