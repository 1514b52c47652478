"""Engines: opened, chosen, raced against each other, tested and tuned."""
