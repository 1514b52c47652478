"""Training: the epoch loop, its stages, restarts and what is told of it. Knows no kernel and no command line."""
