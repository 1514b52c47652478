"""The archive of a job, unpacked: only what a server of ours would have put into it."""

from __future__ import annotations

import secrets
import shutil
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from difflogic.errors import ServiceError, UsageError
from difflogic.serve.artefacts import NAME

BLOCK = 1 << 20


def check_new(folder: Path) -> None:
    """Raises UsageError unless `folder` is free: absent, or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder: choose another one.")


def unpack(file: BinaryIO, job: str, folder: Path) -> list[str]:
    """Put the files of a zip into a new folder, all of them or none; returns their names.

    Raises ServiceError for an archive with anything in it but plain files of the job, UsageError where the folder is
    not free, OSError.
    """
    check_new(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(file) as archive:
            members = {_name(each, job): each for each in archive.infolist()}
            if len(members) < len(archive.infolist()):
                raise ServiceError("The archive has two files of one name: nothing was unpacked.")
            _extract(archive, members, folder)
    except zipfile.BadZipFile as error:
        raise ServiceError("The archive is damaged: nothing was unpacked, fetch it again.") from error
    return sorted(members)


def _extract(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], folder: Path) -> None:
    made = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    made.mkdir()
    try:
        for name, member in members.items():
            with archive.open(member) as source, (made / name).open("xb") as target:
                shutil.copyfileobj(source, target, BLOCK)
        if folder.exists():
            folder.rmdir()
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made)
        raise


def _name(member: zipfile.ZipInfo, job: str) -> str:
    """The plain name of a member. Raises ServiceError."""
    top, slash, name = member.filename.partition("/")
    is_file = stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG)
    if top != job or not slash or not NAME.fullmatch(name) or not is_file:
        raise ServiceError(f"The archive has a member {member.filename[:80]!r} that no job has: nothing was unpacked.")
    if member.compress_type != zipfile.ZIP_STORED:
        raise ServiceError("The archive is compressed, which no server of ours does: nothing was unpacked.")
    return name
