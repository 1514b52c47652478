"""Functions in the languages that need a frame around the gates: one file per format, as for cells."""
