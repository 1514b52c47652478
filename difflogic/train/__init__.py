"""Training: tasks, the epoch loop, run folders and their pictures. Knows no kernel and no command line."""
