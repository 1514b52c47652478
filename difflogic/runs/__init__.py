"""Files of runs: folder, journal, manifest, checkpoints and images. Packages without training also use them."""
