"""Migrations of the store's database: `0001.sql`, `0002.sql`, ..., which are run in this order."""
