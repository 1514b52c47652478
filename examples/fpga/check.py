"""Compares what a monitor saw with a simulation, frame by frame: `python check.py film.txt film.npy`."""

import sys
from pathlib import Path

import numpy as np

film = np.load(sys.argv[2])[..., 0]
seen = np.array([list(row) for row in Path(sys.argv[1]).read_text().split()]) != "0"
if not np.array_equal(seen.reshape(-1, *film.shape[1:]), film != 0):
    raise SystemExit("The film on the screen differs from the simulation.")
sys.stdout.write(f"All {len(film)} frames are equal.\n")
