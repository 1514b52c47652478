"""Interface between training and the engines: what an engine takes and returns."""
