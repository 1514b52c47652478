"""Hard circuits in compiled code: rollouts, search and simulation."""
