"""Benchmark of recordings: it samples the same rules each time, and reads circuit.json as difflogic does."""

import json

import numpy as np

from benchmarks import films
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist


def test_rules_and_films_follow_from_the_seed() -> None:
    one, two = films.rules(1), films.rules(1)
    assert [rule.name for rule in one] == [rule.name for rule in two]
    assert len(one) == 14
    for first, second in zip(one, two, strict=True):
        (x, y), again = first.film(np.random.default_rng(2)), second.film(np.random.default_rng(2))
        assert np.array_equal(x, again[0])
        assert np.array_equal(y, again[1])
        assert np.array_equal(x[films.CLIPS :], y[: -films.CLIPS])  # a clip's next pair begins with its last frame
        assert x.shape[-1] == first.channels


def test_the_judge_steps_a_circuit_as_its_netlist_does() -> None:
    rng = np.random.default_rng(3)
    wires = [rng.integers(0, 18 + gate, 2) for gate in range(30)]
    netlist = CellNetlist.build(2, False, rng.integers(0, 16, 30), wires, [45, 47])
    x = rng.integers(0, 2, (3, 5, 6, 2), dtype=np.uint8)
    found = films.stepped(json.loads(netlist_json.to_json(netlist)), x)
    assert np.array_equal(found, netlist.rollout(x, 1)[-1])
