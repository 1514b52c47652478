"""Readers of circuits, one module per format; `difflogic.circuits.readers.source` chooses the reader for a file."""
