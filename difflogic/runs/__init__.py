"""The run on disk: folder, journal, manifest, checkpoints and pictures. Read by rooms that never train."""
