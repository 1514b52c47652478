"""Tables and numbers that need only NumPy: gates, random numbers, bits, wiring, rules."""
