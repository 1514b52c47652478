"""Measurement scripts, with `difflogic bench` and rival programs, for the published numbers of the README and docs."""
