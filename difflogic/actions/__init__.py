"""Actions on trained circuits: each is one function, which commands, workers and Python users call."""
