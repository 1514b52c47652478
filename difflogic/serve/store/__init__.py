"""Store jobs with their leases, files and backups, in SQLite."""
