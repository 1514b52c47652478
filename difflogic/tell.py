"""Words from the depths to whoever watches, where no caller could pass them on."""

from __future__ import annotations

import sys


def tell(text: str) -> None:
    """One line on standard error; never on standard output, which may carry JSON."""
    sys.stderr.write(f"difflogic: {text}\n")
    sys.stderr.flush()
