"""Tables and numbers, on NumPy alone: gates, random numbers, bits, wiring, rules."""
