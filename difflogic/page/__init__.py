"""Training in a web page: presets as data, the player, and the one file that holds both."""
