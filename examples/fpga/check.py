"""Compare recorded frames of the screen with a simulation: `python check.py film.txt film.npy`."""

import sys
from pathlib import Path

import numpy as np

frames = np.load(sys.argv[2])[..., 0]
screen = np.array([list(row) for row in Path(sys.argv[1]).read_text().split()]) != "0"
if not np.array_equal(screen.reshape(-1, *frames.shape[1:]), frames != 0):
    raise SystemExit("The frames on the screen differ from the simulation.")
sys.stdout.write(f"All {len(frames)} frames are equal.\n")
