"""What a trained circuit can do beyond its training: other grids, longer, asynchronous, damaged."""
