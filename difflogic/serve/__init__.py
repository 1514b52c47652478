"""Training service: a store of jobs, workers that run the jobs, and an HTTP server. Requires the extra `serve`."""
