"""What a supervisor does about workers that never come to work."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from difflogic.serve.worker import supervisor as supervisor_module
from difflogic.serve.worker.supervisor import MAX_BACK_OFF_S, Supervisor


def test_a_worker_that_cannot_be_started_is_tried_ever_more_rarely(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "time", SimpleNamespace(monotonic=lambda: 100.0))
    supervisor = Supervisor(tmp_path, ["cpu"], command=("/nowhere/python",))
    slot = supervisor._open_slots()[0]
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
