"""What a folder is mounted from: a store is kept on a disk of this machine alone.

SQLite's readers and writers meet in memory that they map from a file. Two machines map two memories, and the database
is malformed within half a minute. An overlay is refused too: it is the passing layer of a container, deleted with it.
"""

import os
import re
from pathlib import Path

from difflogic.errors import StoreError

ALLOW = "DIFFLOGIC_ANY_MOUNT"
"""The variable that allows any mount, here and in the processes that this one starts."""
MOUNTS = Path("/proc/self/mountinfo")
NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|auristorfs|ceph|lustre|gpfs|glusterfs|beegfs|orangefs|pvfs2|ocfs2|gfs2|coda|ncpfs|ncp|"
    r"panfs|wekafs|acfs|virtiofs|vboxsf|vmhgfs|prl_fs|fuse(\..*)?"
)
"""Kinds of file systems that another machine may have mounted too; of FUSE nobody knows. `fuseblk` is a disk."""
OVERLAY = re.compile(r"overlay|overlayfs|aufs|unionfs")


def kind_of(folder: Path) -> str | None:
    """The kind of file system that a folder is on, as `ext4`; None where the system does not tell."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place, best, kind = folder.resolve(), -1, None
    for line in lines:
        # 36 35 98:0 /root /mnt/my\040disk rw,noatime master:1 - ext4 /dev/sda rw: after the dash come kind and source.
        fields, _, rest = line.partition(" - ")
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields.split()[4]))
        # The deepest mount point holds the folder; of several at one point the last one lies on top.
        if len(point.parts) >= best and place.is_relative_to(point):
            best, kind = len(point.parts), rest.split()[0]
    return kind


def refuse_shared(folder: Path) -> None:
    """Raises StoreError where the folder is on a network or overlay mount, unless the variable ALLOW is set."""
    kind = kind_of(folder)
    if kind is None or os.environ.get(ALLOW):
        return
    if NETWORK.fullmatch(kind):
        what = "a second machine that uses it would destroy the database"
    elif OVERLAY.fullmatch(kind):
        what = "it would be deleted with the container that it belongs to"
    else:
        return
    raise StoreError(
        f"The store {folder} would be on a mount of kind {kind}, where {what}: put it on a disk or volume of this "
        f"machine, or, where you know better, give `serve` --any-mount or set {ALLOW}=1."
    )
