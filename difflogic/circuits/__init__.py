"""Hard circuits: read, simplify, prove."""
