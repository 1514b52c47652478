"""Of several wirings the one that training begins with."""

from __future__ import annotations

from typing import Any

import pytest

from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.errors import ConfigError
from difflogic.reference.engine import ReferenceEngine
from difflogic.train import beginning, start, tasks

PICTURE = (".......", "12.4..1", ".......", "1.1.777", "3......", ".......")
SMALL = presets.colored_g().with_(
    model={
        "channels": 6,
        "perceive": {"widths": [9, 8, 4, 2], "connections": ["first_kernel", "unique", "unique"]},
        "update": {"widths": [54, 30, 20, 6], "connections": ["unique", "unique", "unique"]},
        "wiring_per_kernel": True,
    },
    task={"height": 6, "width": 7, "steps": 3, "start": "seed", "picture": PICTURE},
)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("all_round", [False, True])
@pytest.mark.parametrize("picture", [False, True])
def test_what_is_met_is_what_the_hard_circuit_shows(periodic: bool, all_round: bool, picture: bool) -> None:
    task: dict[str, Any] = {"start": "picture", "start_picture": PICTURE[::-1]} if picture else {}
    config = SMALL.with_(model={"periodic": periodic, "all_round": all_round}, task=task)
    wanted = tasks.target(config.task).any(axis=-1)
    counts = []
    for seed in range(8):
        circuit = Circuit.initial(config.model, seed, 9.0)
        last = ReferenceEngine().rollout(circuit, tasks.start(config)[None], config.task.steps, "hard")[-1][0]
        counts.append(int((last.any(axis=-1) & wanted).sum()))
        assert beginning.met(circuit, config) == counts[-1]
    assert len(set(counts)) > 1


def test_the_wiring_that_meets_most_is_taken() -> None:
    one, many = (beginning.circuit_of(SMALL.with_(train={"draws": draws})) for draws in (1, 30))
    own = Circuit.initial(SMALL.model, SMALL.seed)
    assert all((ours == drawn).all() for ours, drawn in zip(one.update_wires, own.update_wires, strict=True))
    assert beginning.met(many, SMALL) > beginning.met(one, SMALL)
    again = start.fresh(SMALL.with_(train={"draws": 30}), None).members[0].job.circuit
    assert all((ours == drawn).all() for ours, drawn in zip(again.update_wires, many.update_wires, strict=True))


@pytest.mark.parametrize("config", [presets.checkerboard(), presets.colored_g(), presets.game_of_life()])
def test_where_signals_are_everywhere_or_nowhere_there_is_nothing_to_choose(config: Config) -> None:
    with pytest.raises(ConfigError) as raised:
        config.with_(train={"draws": 2})
    assert str(raised.value) == 'draws above 1 needs target "picture", and start "seed" or "picture".'
