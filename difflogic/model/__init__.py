"""Data structures and file formats of soft and hard circuits."""
