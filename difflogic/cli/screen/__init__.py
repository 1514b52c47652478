"""Commands show lines, bars, tables and previews."""
