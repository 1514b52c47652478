"""A store that an earlier version left: it is migrated, and everything in it goes on."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from difflogic.runs import run_list
from difflogic.serve.api import tokens
from difflogic.serve.client import Client, unpack
from difflogic.serve.store.store import Store
from difflogic.serve.worker.supervisor import Supervisor
from tests.serve.live import serving
from tests.serve.service import by_hand, ended, short_config, untar
from tests.train.tiny import assert_same_run, tiny_config

pytestmark = pytest.mark.usefixtures("compiled")

OLD = Path(__file__).parents[1] / "data" / "service_store.tar.gz"
"""Of commit 4fae31d, whose database is of version 2: a job that is done, one paused at epoch 50 of 600, one queued."""


def test_an_old_store_goes_on(tmp_path):
    untar(OLD, tmp_path)
    folder = tmp_path / "store"
    configs = {"done": tiny_config(), "paused": short_config(600), "queued": tiny_config().with_(seed=24)}
    token, is_new = tokens.generated_token(folder)
    assert not is_new
    with (
        serving(folder, tokens={tokens.OPERATOR: token}) as live,
        Client(live.address, token) as client,
        tempfile.TemporaryFile() as file,
    ):
        assert (folder / "store.sqlite3.version-2").is_file()
        jobs = {job["name"]: job for job in client.jobs()}
        assert [job["status"] for job in jobs.values()] == ["queued", "paused", "done"]
        assert {name: job["config"] for name, job in jobs.items()} == {
            name: config.to_dict() for name, config in configs.items()
        }
        client.archive(jobs["done"]["id"], file)
        unpack(file, jobs["done"]["id"], tmp_path / "got")
        assert run_list.read(tmp_path / "got").epoch == 12
        with Supervisor(folder, ["cpu"]):
            live.store.resume(jobs["paused"]["id"])
            for name in ("paused", "queued"):
                assert ended(live.store, jobs[name]["id"]).status == "done"
    store = Store.existing(folder)
    for name, config in configs.items():
        assert_same_run(store.job_folder(jobs[name]["id"]).run, by_hand(config, tmp_path / name))
