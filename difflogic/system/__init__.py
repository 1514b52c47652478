"""Access to files, caches, memory and processors of the machine, for all packages."""
