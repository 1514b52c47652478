"""List and zip a job's downloadable files, which are the files in its run folder and the results of post-processing."""

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
"""Pattern of valid file names, which contain no path separator and do not begin with a dot."""
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
"""Suffix of drawings, which browsers display instead of saving."""
DRAWING_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""Content security policy for drawings, which may come from users: no scripts and no requests."""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "frame-ancestors 'self'; sandbox allow-scripts",
    "X-Frame-Options": "SAMEORIGIN",
}
"""Headers of jobs' HTML pages: they are shown in a frame, and their scripts cannot access the service."""
PAGES = (SWEEP_PAGE, SHOWN["html"])
"""Names of jobs' HTML pages, which workers write and users cannot upload."""
OTHER = "application/octet-stream"
BLOCK = 1 << 20


@dataclass(frozen=True)
class Artefact:
    """File of a job that can be downloaded."""

    name: str
    size: int
    modified: str
    """Time of the last change in UTC, in ISO 8601 format."""


def media_type(name: str) -> str:
    """Return the media type for a file name's suffix, but never HTML, since scripts in a page could call the API."""
    return MEDIA.get(Path(name).suffix, OTHER)


def _paths(job: JobFolder) -> dict[str, Path]:
    """Return a job's files by name, excluding links; post-processing results take precedence over run files."""
    paths = {}
    for folder in (*([job.whole] if job.is_sweep else []), job.run, job.files):
        if folder.is_dir() and not folder.is_symlink():
            for entry in os.scandir(folder):
                temporary = entry.name.endswith(TEMPORARY)
                # Only names that are listed here can be downloaded: no path is made from a client's text.
                if NAME.fullmatch(entry.name) and not temporary and entry.is_file(follow_symlinks=False):
                    paths[entry.name] = Path(entry.path)
    return dict(sorted(paths.items()))


def listed(job: JobFolder) -> list[Artefact]:
    """Return a job's downloadable files, sorted by name. Raises OSError."""
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
    """Return the path of the job's file `name`, or None if there is no such file."""
    return _paths(job).get(name)


def zipped(job: JobFolder, folder: str) -> Iterator[bytes]:
    """Yield an uncompressed zip of a job's files in blocks; `folder` is the top folder in the zip. Raises OSError."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, path in _paths(job).items():
            try:
                source = path.open("rb")
            except FileNotFoundError:  # replaced just now
                continue
            # Images and checkpoints would hardly shrink. Without dates, equal files give equal archives.
            with source, archive.open(zipfile.ZipInfo(f"{folder}/{name}"), "w", force_zip64=True) as target:
                while block := source.read(BLOCK):
                    target.write(block)
                    yield sink.taken()
    yield sink.taken()


class _Sink(io.BytesIO):
    """Unseekable buffer for writing an archive; `taken` returns and removes its contents."""

    def tell(self) -> int:
        """Raise OSError, so that `zipfile` treats this buffer as an unseekable stream."""
        raise OSError

    def taken(self) -> bytes:
        """Return the bytes written since the last call."""
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        return data
