"""The files of a job that can be had: those of its run folder, and those of a follow-up. Nothing else is reached."""

import io
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from difflogic.circuits.export.formats import SHOWN
from difflogic.serve.store.files import SWEEP_PAGE, JobFolder
from difflogic.system.files import TEMPORARY

NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$")
"""The names that a file may have: without a separator, and without a dot at the beginning."""
MEDIA = {
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".csv": "text/csv; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".toml": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
}
DRAWING = ".svg"
"""The ending of what opens in a browser instead of being saved..."""
DRAWING_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""...and the policy under which it does: a drawing may be anybody's file, and runs and fetches nothing."""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "frame-ancestors 'self'; sandbox allow-scripts",
    "X-Frame-Options": "SAMEORIGIN",
}
"""Of a page that is shown in a frame, a sweep's or a living circuit: its scripts reach nothing of ours."""
PAGES = (SWEEP_PAGE, SHOWN["html"])
"""What those are called, which a worker writes and nobody brings."""
OTHER = "application/octet-stream"
BLOCK = 1 << 20


@dataclass(frozen=True)
class Artefact:
    """A file of a job that can be fetched."""

    name: str
    size: int
    modified: str
    """ISO 8601 in UTC."""


def media_type(name: str) -> str:
    """The media type by the end of the name. HTML is none of them: a page from this address would act in our name."""
    return MEDIA.get(Path(name).suffix, OTHER)


def _paths(job: JobFolder) -> dict[str, Path]:
    """The paths of the files by name, a follow-up's after the run's. Links do not count."""
    found = {}
    for folder in (*([job.whole] if job.is_sweep else []), job.run, job.files):
        if folder.is_dir() and not folder.is_symlink():
            for entry in os.scandir(folder):
                temporary = entry.name.endswith(TEMPORARY)
                # Only names that are listed here can be fetched: no path is made of what a client sent.
                if NAME.fullmatch(entry.name) and not temporary and entry.is_file(follow_symlinks=False):
                    found[entry.name] = Path(entry.path)
    return dict(sorted(found.items()))


def listed(job: JobFolder) -> list[Artefact]:
    """The files, by name. Raises OSError."""
    entries = []
    for name, path in _paths(job).items():
        try:
            status = path.stat()
        except FileNotFoundError:  # replaced just now
            continue
        modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
        entries.append(Artefact(name, status.st_size, modified))
    return entries


def find(job: JobFolder, name: str) -> Path | None:
    """The file of this name; None where there is none."""
    return _paths(job).get(name)


def zipped(job: JobFolder, folder: str) -> Iterator[bytes]:
    """The files as a zip, uncompressed, piece by piece. Raises OSError."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, path in _paths(job).items():
            try:
                source = path.open("rb")
            except FileNotFoundError:  # replaced just now
                continue
            # Pictures and checkpoints hardly shrink. Without a date the same files give the same archive.
            with source, archive.open(zipfile.ZipInfo(f"{folder}/{name}"), "w", force_zip64=True) as target:
                while block := source.read(BLOCK):
                    target.write(block)
                    yield sink.taken()
    yield sink.taken()


class _Sink(io.BytesIO):
    """A file that is read while it is written, and cannot go back."""

    def tell(self) -> int:
        """Refuse: so the archive knows that it is a stream, and counts for itself."""
        raise OSError

    def taken(self) -> bytes:
        """What came since the last call."""
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        return data
