"""A store of version 0.1.0 is opened by every later one, and everything in it goes on."""

import shutil
import zipfile
from pathlib import Path

import pytest

from difflogic.config.policy import any_config
from difflogic.devices.open import open_engine
from difflogic.serve.store.files import STORE
from difflogic.serve.store.store import Store
from difflogic.serve.worker.supervisor import Supervisor
from difflogic.train.trainer import Trainer
from tests.serve.service import by_hand, ended, short_config
from tests.train.tiny import assert_same_run, tiny_config

CONFIGS = {"done": tiny_config(), "paused": short_config(600), "queued": tiny_config().with_(seed=24)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(Path(__file__).parents[1] / "data" / "store_0.1.0.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "store"


@pytest.mark.parametrize("has_database", [True, False])
def test_jobs_of_version_0_1_0_are_read(folder, has_database):
    if not has_database:
        (folder / STORE).unlink()
    store = Store.open(folder)
    jobs = {job.name: job for job in store.jobs()}
    standings = [(job.name, job.owner, job.status, job.progress, job.saved_progress) for job in jobs.values()]
    assert standings[:2] == [("follow-up", "ann", "queued", 0, 0), ("queued", "ben", "queued", 0, 0)]
    assert standings[2:] == [("done", "ann", "done", 12, 12), ("paused", "ann", "paused", 50, 50)]
    # Fields that came later have their defaults.
    assert {name: any_config(jobs[name].config) for name in CONFIGS} == CONFIGS
    assert (jobs["done"].tags, jobs["done"].engine, jobs["done"].goal) == (["kept"], "cpu", 12)
    assert (jobs["follow-up"].source, jobs["follow-up"].options) == (jobs["done"].id, {"formats": ["c"]})
    again, created = store.submit("ann", jobs["done"].spec(), "the key of done")
    assert (again.id, created) == (jobs["done"].id, False)


@pytest.mark.usefixtures("compiled")
@pytest.mark.exhaustive
def test_it_goes_on(folder, tmp_path):
    """Done jobs stay; paused jobs go on as without a server, and queued jobs are trained."""
    store = Store.open(folder)
    jobs = {job.name: job.id for job in store.jobs()}
    runs = {name: store.job_folder(jobs[name]).run for name in CONFIGS}
    # Sums may be rounded otherwise than by the version that began them, so that it is compared with this one's.
    for name in ("done", "paused"):
        shutil.copytree(runs[name], tmp_path / name)
    Trainer(CONFIGS["paused"], open_engine("cpu")).run(resume=tmp_path / "paused")
    store.resume(jobs["paused"])
    with Supervisor(folder, ["cpu"]):
        for job in jobs.values():
            assert ended(store, job).status == "done"
    assert [path.name for path in store.job_folder(jobs["follow-up"]).files.iterdir()]
    by_hand(CONFIGS["queued"], tmp_path / "queued")
    for name, run in runs.items():
        assert_same_run(run, tmp_path / name)
