"""The command `difflogic`: one file per subcommand, loaded when it is called."""
