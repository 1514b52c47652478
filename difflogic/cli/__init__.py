"""The command `difflogic`, and the code that its subcommands share."""
