"""In-browser training: presets as data, JavaScript that trains and displays them, and an HTML file with both."""
