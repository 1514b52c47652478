"""Exports of circuits for other programs, one module per format; `formats` has the table of all formats."""
