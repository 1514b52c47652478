"""`bin/lib/reference.py`, which makes the reference from the code."""

import importlib.util
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("reference", CHECKOUT / "bin/lib/reference.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)
