"""The machines of a Ray cluster: three nodes of a real one on this machine, and one of them is lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from difflogic.cli import main as cli
from difflogic.serve.api.tokens import Tokens
from difflogic.serve.cluster import Cluster
from difflogic.serve.worker.devices import FOLLOW_UPS
from difflogic.serve.worker.supervisor import Supervisor
from tests.serve.live import ANN, Live, serving
from tests.serve.service import by_hand, ended, short_config, spec_of, wait
from tests.train.tiny import assert_same_run

JOBS = 4


def test_without_ray_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["serve", str(tmp_path / "store"), "--workers", "ray"]) == 2
    assert "need Ray: install it with pip install 'difflogic-ca[ray]'." in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def holders(live: Live) -> dict[str, str]:
    """The node of each job that a machine has, by the beginning of its id."""
    return {each.job: each.name.split("-")[1] for each in live.store.workers() if each.job is not None}


def test_a_machine_that_is_lost(compiled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost and nothing is done twice: every job comes to what it would have come to by hand."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # The head computes nothing, since this process stands on it: it is not the one that is lost.
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    started = {node.node_id[:8]: node for node in (nodes.add_node(num_cpus=1) for _ in range(3))}
    tokens = Tokens({"ann": ANN})
    config = short_config()
    try:
        with serving(tmp_path / "home", tokens=tokens) as live, Supervisor(live.store.folder, [FOLLOW_UPS]):
            cluster = Cluster(nodes.address, ["cpu"])
            cluster.start(live.address, tokens, live.context.remote.forget_all)
            jobs = [live.store.submit("ann", spec_of(config, name=str(number)))[0].id for number in range(JOBS)]

            def halfway() -> bool:
                return any(live.store.job(job).saved_epoch >= 100 for job in holders(live))

            wait(halfway, "a job to be saved")
            job = next(job for job in holders(live) if live.store.job(job).saved_epoch >= 100)
            nodes.remove_node(started.pop(holders(live)[job]), allow_graceful=False)
            for each in jobs:
                wait(lambda each=each: ended(live.store, each), f"job {each} to end")
            done = [live.store.job(each) for each in jobs]
            assert [each.status for each in done] == ["done"] * JOBS
            assert [each.attempts for each in done if each.id == job] == [1]
            expected = by_hand(config, tmp_path / "hand" / "run")
            for each in done:
                assert_same_run(expected, live.store.job_folder(each).run)
            cluster.close()
            assert live.store.workers() == []
    finally:
        nodes.shutdown()
