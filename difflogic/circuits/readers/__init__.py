"""Circuits in other people's formats, one file each; `difflogic.circuits.readers.source` chooses."""
