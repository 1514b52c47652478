"""Sweeps: many runs that differ in some fields, each a trial, with a table, a page and the best of them."""
