"""Basic tables and functions that need only NumPy: gates, random numbers, packed bits, wiring and rules."""
