"""Training service: a store of jobs, workers that run the jobs, and an HTTP server; needs the extra `[serve]`."""
