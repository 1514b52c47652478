"""Command line `difflogic`: its entry point, its subcommands, and the code that they share."""
