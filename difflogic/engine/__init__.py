"""Interface between training and the engines: arguments and results of engines."""
