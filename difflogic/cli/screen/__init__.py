"""What commands show: lines, bars, tables and previews."""
