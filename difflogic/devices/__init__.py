"""Open, choose, benchmark, test and tune engines."""
