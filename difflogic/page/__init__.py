"""In-browser training: presets as data, the player, and the HTML file that contains both."""
