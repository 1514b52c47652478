"""The user's cache folder: what was measured or compiled here and can be made again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def user_cache() -> Path:
    """DIFFLOGIC_CACHE_DIR, else the system's usual place. It need not exist yet."""
    return Path(os.environ.get("DIFFLOGIC_CACHE_DIR") or platformdirs.user_cache_dir("difflogic", appauthor=False))
