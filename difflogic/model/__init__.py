"""Data structures and files of soft and hard circuits."""
