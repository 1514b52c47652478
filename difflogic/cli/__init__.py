"""The command `difflogic`: what its subcommands share."""
