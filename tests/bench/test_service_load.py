"""A server under load makes no error; how fast it answers is the benchmark's to say."""

import sys
from pathlib import Path

import pytest

from benchmarks.service import load

SECONDS, CLIENTS = 10, 100


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")
def test_load_without_an_error(tmp_path: Path) -> None:
    line = load.measure(tmp_path / "jobs", SECONDS, CLIENTS, CLIENTS, rate=20, compared=False, flood=10 * CLIENTS)
    assert (line["errors"], line["error"]) == (0, None)
    assert line["reads"] >= 15 * SECONDS
    assert line["events"] > SECONDS * CLIENTS
    assert line["submit_p50_ms"] <= line["submit_p99_ms"] <= line["submit_max_ms"]
    assert len(line["flood_mb"]) == load.SAMPLES
    assert line["epochs_per_s_loaded"][0] > 0
