"""Interface of the engines for training: their methods, arguments and results."""
