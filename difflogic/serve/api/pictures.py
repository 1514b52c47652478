"""Pictures, films, samples and tables that clients send, made plain in a process of their own.

    python -m difflogic.serve.api.pictures FILE PIXELS [LABEL]

A file of some megabytes may be made so that its reader works for minutes or takes gigabytes, and holds Python's lock
meanwhile. So the server opens none: a child does, with limits of time and memory, and leaves a PNG of plain pixels, or
of a film and of samples a small `.npz`, in the file's place, which takes no longer to read than it is large.
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
"""Seconds of a processor that a picture may take; the largest that is taken needs less than one."""
WALL_S = 60
"""The same on a machine with much else to do."""
MEMORY = 1 << 30
"""Bytes of addresses that the child may use, besides the pixels."""
BYTES_PER_PIXEL = 32
"""What a pixel takes while it is unpacked, turned and packed again."""
SAMPLES = "data"
"""The name of a file that is a film or samples, and no picture."""
KINDS = {b"GIF8": ".gif", b"\x93NUM": ".npy", b"PK\3\4": ".npz"}
MOST_CELLS, MOST_BYTES = 1 << 22, 1 << 16
"""Of all samples, and of their file as a job keeps it."""
MOST_TABLE = 1 << 20
"""Bytes of a table as a job keeps it."""


def make_plain(path: Path, pixels: int, label: str | None = None) -> None:
    """Put the same picture, upright, RGBA, samples, or the table of a label, into the file. Raises DataError."""
    advice = "give fewer samples, or a shorter film" if path.name == SAMPLES else "save it again, smaller, as a PNG"
    too_much = DataError(f"{path} takes too much time or memory to unpack: {advice}.")
    try:
        # One thread for the libraries of linear algebra that NumPy loads: each more takes addresses for nothing.
        done = subprocess.run(
            [*COMMAND, str(path), str(pixels), *filter(None, [label])], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=WALL_S, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise too_much from error
    if done.returncode != 0:
        raise too_much
    if (refusal := json.loads(done.stdout)) is not None:
        raise DataError(refusal)


def _plain_samples(path: Path) -> None:
    """Raises DataError, LimitError, UsageError for what is neither samples nor a film, or is too large."""
    from difflogic.circuits import recorded
    from difflogic.config import dataset

    kind = "" if patterns.is_pattern(path) else KINDS.get(path.read_bytes()[:4])
    if kind is None:
        raise DataError(f"{path} must be samples, .npz, a film, .gif or .npy, or a pattern that states its rule.")
    named = path.rename(path.with_suffix(kind))
    found = (dataset.load if kind == ".npz" else recorded.samples)(named)
    path.write_bytes(found.encode())
    cells, size = found.x.size + found.y.size, path.stat().st_size
    if cells > MOST_CELLS or size > MOST_BYTES:
        raise LimitError(
            f"{path} has {cells:,} cells in {size:,} bytes once packed, at most {MOST_CELLS:,} in {MOST_BYTES:,} are "
            "taken: give fewer samples, or a shorter film."
        )


def _plain_table(path: Path, label: str) -> None:
    """Raises DataError, LimitError for what is no table of this label, or is too large."""
    from difflogic.config import table
    from difflogic.system import array_files

    if path.read_bytes()[:2] == b"\x1f\x8b":
        path.write_bytes(array_files.content(path.rename(path.with_suffix(".gz"))))
    if is_archive := path.read_bytes()[:2] == b"PK":
        named = path.rename(path.with_suffix(".npz"))
    elif array_files.is_idx(path):
        named = path.rename(path.with_name("data-images"))
        if (labels := path.with_name("labels")).exists():  # where `load_table` looks for them
            labels.rename(path.with_name("data-labels"))
    else:
        named = path.rename(path.with_suffix(".csv"))
    is_encoded = is_archive and {"x", "y", "features", "classes", "label"} == set(array_files.names(named))
    made = (table.decoded(named) if is_encoded else table.load_table(named, label)).encode()
    if len(made) > MOST_TABLE:
        raise LimitError(
            f"{path} has {len(made):,} bytes once packed, at most {MOST_TABLE:,} are taken: give fewer rows."
        )
    path.write_bytes(made)


def _limit(pixels: int) -> None:
    """Let the system end this process where it takes too much, and let all others go before it."""
    with contextlib.suppress(ImportError):  # not on Windows, where only the time is limited
        import resource

        memory = MEMORY + pixels * BYTES_PER_PIXEL
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
        os.nice(10)


def main() -> None:
    """Make the picture or the samples in FILE plain; a refusal goes to standard output, as JSON, else `null`."""
    path, pixels, label = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    _limit(pixels)
    refusal: str | None = None
    try:
        if label:
            _plain_table(path, label[0])
        elif path.name == SAMPLES:
            _plain_samples(path)
        else:
            picture = picture_file.upright(path, pixels)
            picture.info.clear()  # colour profiles and comments would be written too
            picture.save(path, "PNG", compress_level=1)
    except (DataError, LimitError, UsageError) as error:
        refusal = str(error)
    sys.stdout.write(json.dumps(refusal))


if __name__ == "__main__":
    main()
