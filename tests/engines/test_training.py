"""What a training model does at the edges, on every engine."""

from __future__ import annotations

from difflogic.circuit import Circuit
from difflogic.engine import Engine, TrainState
from difflogic.train.tasks import make_job
from tests.train.tiny import tiny_config


def test_no_epochs_change_nothing(engine: Engine) -> None:
    config = tiny_config()
    circuit = Circuit.initial(config.model, config.seed)
    before = TrainState.initial(circuit, config.seed)
    model = engine.open_model(make_job(config, circuit), before)
    model.train(0)
    assert model.drain() == []
    after = model.to_cpu()
    model.close()
    assert after.epoch == 0
    assert after.logits.tobytes() == before.logits.tobytes()
