"""Training: the epoch loop, its stages, restarts and reports. It imports no kernel and no command line."""
