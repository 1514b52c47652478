"""Files of runs: folder, journal, manifest, checkpoints and images. Packages that never train also use them."""
