"""One file per subcommand, loaded when it is called."""
