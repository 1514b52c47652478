"""Training: the epoch loop, its stages, restarts and reports. It imports neither kernels nor the command line."""
