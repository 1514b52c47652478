"""Hard circuits: read, simplified, proved and simulated."""
