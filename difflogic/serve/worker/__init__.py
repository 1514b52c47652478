"""Worker processes that train the jobs of a store."""
