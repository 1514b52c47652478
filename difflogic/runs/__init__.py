"""Runs on disk: folder, journal, manifest, checkpoints and images, also for packages that never train."""
