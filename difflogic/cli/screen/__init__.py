"""Output of commands: lines, progress bars, tables and previews."""
