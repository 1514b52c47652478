"""The machines of a Ray cluster: nodes of a real one on this machine, of which one comes later and one is lost."""

import sys
from pathlib import Path

import pytest

from benchmarks.service.cluster import kill_nodes
from difflogic.cli import main as cli


def test_without_ray_one_sentence_says_what_to_install(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["serve", str(tmp_path / "store"), "--workers", "ray"]) == 1
    assert "A worker on a Ray cluster requires ray, part of the extra `ray`" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


# Ray leaves processes and sockets of lost machines to the garbage collector, which complains of them.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_machine_that_comes_later_and_one_that_is_lost(compiled: None, tmp_path: Path) -> None:
    """The later one works, and does what the lost one had: every job comes to what it would have come to by hand."""
    pytest.importorskip("ray")
    outcome = kill_nodes(tmp_path, 1)
    assert outcome.events == 1
    assert outcome.wrong == []
