"""Check that a store's folder is on a disk that only this machine uses.

SQLite's readers and writers share memory mapped from a file. Two machines cannot share it, and damage the database
within half a minute. An overlay, the temporary layer of a container, is deleted with the container.
"""

import os
import re
from pathlib import Path

from difflogic.errors import StoreError

ALLOW = "DIFFLOGIC_ANY_MOUNT"
"""Environment variable that allows any mount, for this process and its child processes."""
MOUNTS = Path("/proc/self/mountinfo")
NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|auristorfs|ceph|lustre|gpfs|glusterfs|beegfs|orangefs|pvfs2|ocfs2|gfs2|coda|ncpfs|ncp|"
    r"panfs|wekafs|acfs|virtiofs|vboxsf|vmhgfs|prl_fs|fuse(\..*)?"
)
"""Types of file systems that other machines may also mount, including FUSE but not `fuseblk`, which is a disk."""
OVERLAY = re.compile(r"overlay|overlayfs|aufs|unionfs")


def kind_of(folder: Path) -> str | None:
    """Return the type of the file system of `folder`, such as `ext4`, or None if the system does not report it."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place, best, kind = folder.resolve(), -1, None
    for line in lines:
        # 36 35 98:0 /root /mnt/my\040disk rw,noatime master:1 - ext4 /dev/sda rw: after the dash come kind and source.
        fields, _, rest = line.partition(" - ")
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields.split()[4]))
        # The folder is on the deepest mount point; of several mounts at one point, the last one counts.
        if len(point.parts) >= best and place.is_relative_to(point):
            best, kind = len(point.parts), rest.split()[0]
    return kind


def refuse_shared(folder: Path) -> None:
    """Raise StoreError if `folder` is on a network or overlay mount, unless the variable ALLOW is set."""
    kind = kind_of(folder)
    if kind is None or os.environ.get(ALLOW):
        return
    if NETWORK.fullmatch(kind):
        danger = "another machine could damage its database"
    elif OVERLAY.fullmatch(kind):
        danger = "it would be deleted with its container"
    else:
        return
    raise StoreError(
        f"The store {folder} is on a mount of kind {kind}, where {danger}: use a disk or volume of this machine. If "
        f"you know that the mount is safe, start `serve` with --any-mount or set {ALLOW}=1."
    )
