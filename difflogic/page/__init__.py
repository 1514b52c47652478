"""In-browser training: presets as data, the JavaScript that trains and plays them, and the HTML file with both."""
