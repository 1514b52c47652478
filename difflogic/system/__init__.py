"""Access to the machine's files, caches, memory and processors for all packages."""
