"""Functions that open, choose, benchmark, test and tune engines on the devices of this machine."""
