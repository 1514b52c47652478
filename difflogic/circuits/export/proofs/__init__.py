"""Is an export the circuit? One file per format, which asks the real program of its kind."""
