"""Opening, choosing, benchmarking, testing and tuning of engines."""
