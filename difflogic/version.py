"""Version of the package, in a module that imports nothing, so that any other may import it."""

__version__ = "0.1.0"
