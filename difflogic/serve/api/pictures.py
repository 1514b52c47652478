"""Convert uploaded images, recordings, samples and tables into plain files, in a separate process.

    python -m difflogic.serve.api.pictures FILE PIXELS [LABEL]

A malicious file of a few megabytes may take minutes and gigabytes to read, and Python's global interpreter lock blocks
the server meanwhile. Therefore a child process with limited time and memory reads uploaded files. It replaces an image
by a PNG of plain pixels, and any other file by a small `.npz`, whose reading time depends on its size.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from difflogic.config import picture_file
from difflogic.core import patterns
from difflogic.errors import DataError, LimitError, UsageError
from difflogic.system.child import python_command

COMMAND = python_command("-m", "difflogic.serve.api.pictures")
PROCESSOR_S = 5
"""Maximum processor time in seconds for converting a file; the largest allowed image requires less than one second."""
WALL_S = 60
"""Maximum elapsed time in seconds for converting a file."""
MEMORY = 1 << 30
"""Maximum address space of the child process in bytes, in addition to BYTES_PER_PIXEL per pixel."""
BYTES_PER_PIXEL = 32
"""Number of bytes per pixel that unpacking, rotating and packing an image requires."""
SAMPLES = "data"
"""Name of the uploaded file that contains a recording or samples."""
KINDS = {b"GIF8": ".gif", b"\x93NUM": ".npy", b"PK\3\4": ".npz"}
MOST_CELLS, MOST_BYTES = 1 << 22, 1 << 16
"""Maximum number of cells in all samples, and maximum size in bytes of the file with the packed samples."""
MOST_TABLE = 1 << 20
"""Maximum size of a packed table in bytes."""


def make_plain(path: Path, pixels: int, label: str | None = None) -> None:
    """Replace an uploaded file with an upright RGBA image, samples, or (with `label`) a table. Raises DataError."""
    advice = "give fewer samples or frames" if path.name == SAMPLES else "save it again, smaller, as a PNG"
    too_much = DataError(f"{path} requires too much time or memory to unpack: {advice}.")
    try:
        # The linear algebra libraries of NumPy get one thread: more threads would only take address space.
        child = subprocess.run(
            [*COMMAND, str(path), str(pixels), *filter(None, [label])], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=WALL_S, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise too_much from error
    if child.returncode != 0:
        raise too_much
    if (refusal := json.loads(child.stdout)) is not None:
        raise DataError(refusal)


def _plain_samples(path: Path) -> None:
    """Replace a file with its samples as `.npz`. Raises DataError, LimitError or UsageError if invalid or too large."""
    from difflogic.circuits import recorded
    from difflogic.config import dataset

    kind = "" if patterns.is_pattern(path) else KINDS.get(path.read_bytes()[:4])
    if kind is None:
        raise DataError(f"{path} must be samples (.npz), a recording (.gif or .npy), or a pattern with its rule.")
    named = path.rename(path.with_suffix(kind))
    samples = (dataset.load if kind == ".npz" else recorded.samples)(named)
    path.write_bytes(samples.encode())
    cells, size = samples.x.size + samples.y.size, path.stat().st_size
    if cells > MOST_CELLS or size > MOST_BYTES:
        raise LimitError(
            f"{path} must have at most {MOST_CELLS:,} cells in {MOST_BYTES:,} packed bytes, got {cells:,} in {size:,}: "
            "give fewer samples, or a shorter recording."
        )


def _plain_table(path: Path, label: str) -> None:
    """Convert the file of a table to `.npz`; the column `label` has the classes. Raises DataError or LimitError."""
    from difflogic.config import table
    from difflogic.system import array_files

    if path.read_bytes()[:2] == b"\x1f\x8b":
        path.write_bytes(array_files.content(path.rename(path.with_suffix(".gz"))))
    if is_archive := path.read_bytes()[:2] == b"PK":
        named = path.rename(path.with_suffix(".npz"))
    elif array_files.is_idx(path):
        named = path.rename(path.with_name("data-images"))
        if (labels := path.with_name("labels")).exists():  # the name under which `load_table` looks for the labels
            labels.rename(path.with_name("data-labels"))
    else:
        named = path.rename(path.with_suffix(".csv"))
    is_encoded = is_archive and {"x", "y", "features", "classes", "label"} == set(array_files.names(named))
    packed = (table.decoded(named) if is_encoded else table.load_table(named, label)).encode()
    if len(packed) > MOST_TABLE:
        raise LimitError(f"{path} must have at most {MOST_TABLE:,} packed bytes, got {len(packed):,}: give fewer rows.")
    path.write_bytes(packed)


def _limit(pixels: int) -> None:
    """Limit the time, memory (for an image of `pixels` pixels) and priority of this process."""
    with contextlib.suppress(ImportError):  # on Windows, only the elapsed time is limited
        import resource

        memory = MEMORY + pixels * BYTES_PER_PIXEL
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
        os.nice(10)


def main() -> None:
    """Convert FILE, and write an error message, or null if there is none, to standard output as JSON."""
    path, pixels, label = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    _limit(pixels)
    refusal: str | None = None
    try:
        if label:
            _plain_table(path, label[0])
        elif path.name == SAMPLES:
            _plain_samples(path)
        else:
            image = picture_file.upright(path, pixels)
            image.info.clear()  # otherwise colour profiles and comments would be written too
            image.save(path, "PNG", compress_level=1)
    except (DataError, LimitError, UsageError) as error:
        refusal = str(error)
    sys.stdout.write(json.dumps(refusal))


if __name__ == "__main__":
    main()
