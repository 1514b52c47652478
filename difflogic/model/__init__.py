"""Circuits as data: soft and hard, in memory and as files."""
