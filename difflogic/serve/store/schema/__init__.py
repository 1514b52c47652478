"""The store's migrations: `0001.sql`, `0002.sql`, ..., each what the one before it lacks."""
