"""Actions on trained circuits. Commands, workers and Python users call the same function for each action."""
