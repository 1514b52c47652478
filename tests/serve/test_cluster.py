"""The machines of a Ray cluster: nodes of a real one on this machine, of which one comes later and one is lost."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from difflogic.cli import main as cli
from difflogic.serve.api.tokens import Tokens
from difflogic.serve.cluster import Cluster
from difflogic.serve.remote import REMOTE
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
    assert cli.main(["serve", str(tmp_path / "store"), "--workers", "ray"]) == 1
    assert "A worker on a Ray cluster needs ray, which comes with the extra `ray`" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def holders(live: Live) -> dict[str, str]:
    """The node of each job that a machine has, by the beginning of its id."""
    return {each.job: each.name.split("-")[1] for each in live.store.workers() if each.job is not None}


def listed(live: Live) -> set[str]:
    """The nodes whose workers the server lists, by the beginning of their ids."""
    return {each.name.split("-")[1] for each in live.store.workers() if each.name.startswith(REMOTE)}


# Ray leaves processes and sockets of lost machines to the garbage collector, which complains of them.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_machine_that_comes_later_and_one_that_is_lost(compiled: None, tmp_path: Path, monkeypatch) -> None:
    """The later one works, and does what the lost one had: every job comes to what it would have come to by hand."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # The head computes nothing, since this process stands on it: it is not the one that is lost.
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    first = nodes.add_node(num_cpus=1)
    tokens = Tokens({"ann": ANN})
    config = short_config()
    try:
        with serving(tmp_path / "home", tokens=tokens) as live, Supervisor(live.store.folder, [FOLLOW_UPS]):
            cluster = Cluster(nodes.address, ["cpu"])
            cluster.start(live.address, tokens, live.store.lose_workers)
            wait(lambda: listed(live) == {first.node_id[:8]}, "the first machine")
            later = nodes.add_node(num_cpus=1).node_id[:8]
            wait(lambda: later in listed(live), "the later machine")
            jobs = [live.store.submit("ann", spec_of(config, name=str(number)))[0].id for number in range(JOBS)]

            def halfway() -> list[str]:
                """Jobs that the first machine has, and has saved."""
                own = [job for job, node in holders(live).items() if node != later]
                return [job for job in own if live.store.job(job).saved_epoch >= 100]

            wait(halfway, "a job to be saved")
            job = halfway()[0]
            nodes.remove_node(first, allow_graceful=False)
            for each in jobs:
                wait(lambda each=each: ended(live.store, each), f"job {each} to end")
            done = [live.store.job(each) for each in jobs]
            assert [each.status for each in done] == ["done"] * JOBS
            assert [each.lost_tries for each in done if each.id == job] == [1]
            expected = by_hand(config, tmp_path / "hand" / "run")
            for each in done:
                assert_same_run(expected, live.store.job_folder(each).run)
            cluster.close()
            assert live.store.workers() == []
    finally:
        nodes.shutdown()
        gc.collect()  # here, and not in another test
