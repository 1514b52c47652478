"""Files, caches and memory of the machine: what every room may use."""
