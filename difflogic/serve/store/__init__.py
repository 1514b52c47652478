"""The store: jobs, leases, files and backups in SQLite."""
