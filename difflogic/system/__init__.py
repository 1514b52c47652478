"""Files, caches and memory of the machine, for use by every package."""
