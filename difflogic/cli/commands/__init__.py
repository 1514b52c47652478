"""Subcommands, each in a module that is only imported when the subcommand runs."""
