"""Exports of circuits for other programs, one module per format; `formats` contains the table of all formats."""
