"""Circuits made smaller, and proofs that they are still the same."""
