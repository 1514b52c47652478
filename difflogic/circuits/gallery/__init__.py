"""Static pages of runs: what each learned, alive, counted, drawn, and ready to take home."""
