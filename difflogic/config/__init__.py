"""A request for training is made of the configuration, its fields, presets and recipes."""
