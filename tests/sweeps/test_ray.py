"""Sweeps on a real Ray cluster of several nodes on this machine, one of which is lost, and another one joins."""

import sys
from pathlib import Path

import pytest

from benchmarks.service.cluster import kill_nodes_of_sweep
from difflogic.cli import main as cli

WORDS = ["sweep", "checkerboard-small", "--over", "seed=0..1", "--workers", "ray"]


def test_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main([*WORDS, "-o", str(tmp_path / "sweep")]) == 1
    assert "A sweep on a Ray cluster requires ray, part of the extra `ray`" in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()


# Ray leaves processes and sockets of lost machines to the garbage collector, which complains of them.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_machine_is_lost(tmp_path: Path) -> None:
    """The table and every run are those of a sweep that nothing disturbs, and the machine that joins has work."""
    pytest.importorskip("ray")
    outcome = kill_nodes_of_sweep(tmp_path, 1)
    assert outcome.events == 1
    assert outcome.wrong == []
