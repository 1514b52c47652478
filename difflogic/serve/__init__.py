"""The training service: a store of jobs, workers that train them, and a server in front. Extra `[serve]`."""
