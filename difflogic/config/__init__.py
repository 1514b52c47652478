"""What is asked for: the configuration, its fields, presets and recipes."""
