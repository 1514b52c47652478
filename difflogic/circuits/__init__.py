"""Hard circuits: read, simplified, proved, exported and simulated."""
