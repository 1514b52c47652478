"""Exports of functions in formats that need code around the gates, one module per format as for cells."""
