"""Sweeps on a real Ray cluster of several nodes on this machine, one of which is lost."""

from __future__ import annotations

import io
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from difflogic.cli import main as cli
from difflogic.runs.folder import LOCK
from difflogic.sweeps import table
from difflogic.sweeps.cluster import RayWorkers, pack, unpack
from difflogic.sweeps.course import LEDGER, Course, SweepObserver, opened
from difflogic.system.files import TEMPORARY
from difflogic.train.signals import Stop
from tests.sweeps.here import described, swept, untimed
from tests.train.tiny import assert_same_run

TRIALS = 4
WORDS = ["sweep", "checkerboard-small", "--over", "seed=0..1", "--on"]


def test_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main([*WORDS, "ray", "-o", str(tmp_path / "sweep")]) == 1
    assert "A sweep on a Ray cluster needs ray, which comes with the extra `ray`" in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()


def test_a_folder_in_one_piece(tmp_path: Path) -> None:
    folder, there = tmp_path / "folder", tmp_path / "there"
    for name in ("a", "deep/b", f"{LOCK}", f"c{TEMPORARY}", f"d{TEMPORARY}/e", f"deep/f{TEMPORARY}/g"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "empty").mkdir()
    unpack(pack(folder), there)
    assert {str(each.relative_to(there)) for each in there.rglob("*")} == {"a", "deep", "deep/b", "empty"}
    assert (there / "deep" / "b").read_text() == "deep/b"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("../outside", "x")
    unpack(buffer.getvalue(), there)
    assert not (tmp_path / "outside").exists()


def test_a_machine_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its trial goes on elsewhere from its checkpoint: the table is that of a sweep that nothing happened to."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # else what runs beside the tests comes first
    spec = described({"seed": f"0..{TRIALS - 1}"}, set={"train.epochs": 60, "train.eval_interval": 10})
    whole, _ = swept(tmp_path / "whole", spec)
    # The head computes nothing, since the sweep stands on it: it is not the one that is lost.
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        assert cli.main([*WORDS, f"ray:{nodes.address}", "-o", str(tmp_path / "none")]) == 2
        assert "No machine of the Ray cluster offers CPU" in capsys.readouterr().err
        lost, _ = (nodes.add_node(num_cpus=1) for _ in range(2))
        assert cli.main([*WORDS, f"ray:{nodes.address}", "--devices", "gpu", "-o", str(tmp_path / "none")]) == 2
        assert "offers adapter: begin each with ray start --resources" in capsys.readouterr().err
        folder = tmp_path / "sweep"

        def lose() -> None:
            while len(list((folder / "trials").glob("*/checkpoint.safetensors"))) < 2:
                time.sleep(0.01)
            nodes.remove_node(lost, allow_graceful=False)

        losing = threading.Thread(target=lose, daemon=True)
        with opened(spec, folder) as (found, out):
            course = Course(found, out, RayWorkers(nodes.address, "reference", saved_s=0.0), SweepObserver())
            losing.start()
            done = course.go(Stop())
        losing.join()
        assert len((folder / LEDGER).read_text().splitlines()) == TRIALS
        assert untimed(done) == untimed(whole)
        table.write(done)
        for each in whole.trials:
            assert_same_run(whole.path / each.folder, done.path / each.folder)
    finally:
        nodes.shutdown()
