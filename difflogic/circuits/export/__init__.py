"""Circuits in the forms that other programs take: one file per format, `formats` is the table of them."""
