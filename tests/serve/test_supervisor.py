"""Supervisor: workers that cannot be started, a rebuilt database, and the choice of devices."""

import logging
from types import SimpleNamespace

import pytest

from difflogic.devices import open as opening
from difflogic.serve.store.files import STORE
from difflogic.serve.store.jobs import JobSpec, StoreLostError
from difflogic.serve.store.store import Store
from difflogic.serve.worker import devices
from difflogic.serve.worker import supervisor as supervisor_module
from difflogic.serve.worker.supervisor import MAX_BACK_OFF_S, Supervisor


def test_a_worker_that_cannot_be_started_is_tried_ever_more_rarely(tmp_path, caplog, monkeypatch) -> None:
    monkeypatch.setattr(supervisor_module, "time", SimpleNamespace(monotonic=lambda: 100.0))
    supervisor = Supervisor(tmp_path, ["cpu"], command=("/nowhere/python",))
    slot = supervisor.open_slots()[0]
    with caplog.at_level(logging.INFO, "difflogic.serve"):
        for _ in range(20):
            supervisor._check_slot(slot)  # ten times a second, most of them in vain
        assert len(caplog.records) == 2, "a second try at once, and none for the next half second"
        for _ in range(20):
            slot.due = 0.0
            supervisor._check_slot(slot)
    lines = [record.fields for record in caplog.records]
    assert [line["next_in_s"] for line in lines[:8]] == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, MAX_BACK_OFF_S]
    assert {line["next_in_s"] for line in lines[8:]} == {MAX_BACK_OFF_S}
    assert "/nowhere/python" in lines[0]["why"]
    supervisor._store.close()


def test_hands_elsewhere_go_on_with_a_database_that_was_made_again(store: Store, spec: JobSpec, monkeypatch) -> None:
    """Those of another process, while the server is started again; with a copy of an older day they do not."""
    supervisor = Supervisor(store.folder, ["cpu"])
    old = (store.folder / STORE).read_bytes()
    store.submit("ann", spec)
    for path in store.folder.glob(f"{STORE}*"):
        path.unlink()
    monkeypatch.setattr(supervisor_module, "HANG_CHECK_S", 1e9)
    monkeypatch.setattr(supervisor_module, "DEAD_CHECK_S", 0.0)
    supervisor._check_leases()
    (store.folder / STORE).write_bytes(old)
    supervisor._check_leases()
    with pytest.raises(StoreLostError):
        supervisor._store.jobs()
    made = Store.open(store.folder, rebuild=True)
    supervisor._check_leases()
    assert supervisor._store.jobs() == made.jobs() != []
    supervisor._store.close()


@pytest.mark.parametrize(
    ("named", "usable"),
    [("auto", ["gpu:1", "cpu"]), ("gpu", ["gpu:1"]), ("cpu,follow-ups", ["cpu"]), ("gpu:1,gpu:0", ["gpu:1", "gpu:0"])],
)
def test_software_gpu_is_used_if_named_with_a_warning(named: str, usable: list[str], monkeypatch) -> None:
    monkeypatch.setattr(devices, "gpus", lambda: {"gpu:0": "llvmpipe", "gpu:1": None})
    found, warning = devices.usable(named.split(","))
    assert found == usable
    assert (warning or "").startswith("gpu:0 is llvmpipe: a software GPU " if "gpu:0" in named else "")
    assert (warning is None) == ("gpu:0" not in named)


def test_adapters_of_this_machine_are_listed_by_a_child() -> None:
    adapters = {f"gpu:{each.index}": each.name if each.software else None for each in opening.gpu_adapters()}
    assert devices.gpus() == adapters
