"""Success test: its criteria, and the grids on which it evaluates."""

from dataclasses import replace

import numpy as np
import pytest

from difflogic.config import presets, recipes
from difflogic.config.request import TrainRequest
from difflogic.core.bits import Bits
from difflogic.devices.open import open_engine
from difflogic.engine import job
from difflogic.engine.api import Evaluation
from difflogic.model.cell_netlist import CellNetlist
from difflogic.reference.engine import ReferenceEngine
from difflogic.train import success
from difflogic.train.start import fresh
from difflogic.train.success import SuccessTest
from tests.evaluation.pass_on import keeper
from tests.learned import BORDER, learned

BOARD = presets.get("checkerboard")
ENGINE = ReferenceEngine()


def test_evaluation_grids_are_turned_and_mirrored() -> None:
    probes = np.arange(2 * 3 * 3 * 2).reshape(2, 3, 3, 2)
    views = success.turned(probes)
    assert views.shape == (16, 3, 3, 2)
    assert len({view.tobytes() for view in views}) == 16
    assert {tuple(sorted(view.reshape(-1))) for view in views} == {tuple(sorted(p.reshape(-1))) for p in probes}
    assert success.turned(probes[:, :2]).shape == (8, 2, 3, 2), "only what keeps the shape of the grid"


def test_evaluation_grids_are_put_side_by_side() -> None:
    probes = np.arange(5 * 2 * 2).reshape(5, 2, 2, 1)
    (board,) = success.tiled(probes, 4, 5)
    assert board[..., 0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    assert success.tiled(probes[:2], 4, 4)[0, ..., 0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]] * 2, "too few"
    assert success.tiled(probes, 1, 1).shape == (5, 2, 2, 1), "too large"


def test_fresh_initial_states_depend_on_the_seed() -> None:
    one, again = (SuccessTest(ENGINE, BOARD.with_(seed=3))._draw(16, 16) for _ in range(2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, SuccessTest(ENGINE, BOARD.with_(seed=4))._draw(16, 16))
    assert set(np.unique(one)) == {0, 1}


@pytest.mark.parametrize(
    ("preset", "judged", "right"),
    [
        ("checkerboard", {"wrong": 0, "wrong_later": 0, "wrong_large": 0}, True),
        ("checkerboard", {"wrong": 0, "wrong_later": 0, "wrong_large": 1}, False),
        ("checkerboard-async", {"wrong_shares": 3 * [[0.0, 0.01, 0.5]], "stay_wrong": 0}, True),
        ("checkerboard-async", {"wrong_shares": [[0, 0, 0], [0.0, 0.011, 0.011]], "stay_wrong": 0}, False),
        # Seven cells in a corner are a small share of a large grid, and wrong all the same.
        ("checkerboard-async", {"wrong_shares": [[0.009] * 3, [0.0045] * 3, [0.0023] * 3], "stay_wrong": 7}, False),
        ("game-of-life", {"wrong": 9}, False),
    ],
)
def test_success_depends_on_the_measurement(preset: str, judged: dict[str, object], right: bool) -> None:
    assert SuccessTest(ENGINE, presets.get(preset)).is_right(judged) is right


def evaluation(wrong: int) -> Evaluation:
    return Evaluation(wrong, wrong, 32 * 256, wrong)


def test_proved_board_needs_no_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    test = SuccessTest(ENGINE, BOARD)
    circuit = learned(BOARD)
    assert test.is_proved(circuit)
    assert not test.has_wrong_start(circuit)
    member = fresh(TrainRequest(config=BOARD)).members[0]
    member.job = replace(member.job, circuit=circuit)
    member.state = replace(member.state, logits=circuit.flat_logits())
    with monkeypatch.context() as patch:
        patch.setattr(SuccessTest, "wrong", None)
        assert test.passed(member, evaluation(0))
        assert not test.passed(member, evaluation(1))


def test_board_is_proved_on_every_grid_or_refused() -> None:
    """The three gates grow the board from the lower left; upside down, and beside an inverter, from the upper left."""
    gates, wires = [8, 4, 7, 12], [(9, 17), (24, 27), (15, 28), (29, 29)]
    lower = CellNetlist.build(3, False, gates[:3], wires[:3], [29, 6, 0], visible=1)
    assert success.on_other_grids(BOARD, lower) == {"32x32": True, "64x64": True, "18x17": False}
    # The channel that is shown becomes the last one, and its opposite is shown in its place.
    upside_down = [6, 7, 8, 3, 4, 5, 0, 1, 2]
    turned = [9 * (channel or 3) + f for channel in range(3) for f in upside_down] + [36, 37, 38]
    moved = [(turned[a], turned[b]) for a, b in wires]
    upper = CellNetlist.build(4, False, gates, moved, [39, turned[6], turned[0], 38], visible=1)
    assert all(success.on_other_grids(BOARD, upper).values())


def test_unproved_board_is_tested_by_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proof and rollouts agree on the learned board, and rollouts find a wrong one."""
    monkeypatch.setattr(success, "STARTS", 4)
    engine = open_engine("cpu")
    test, circuit = SuccessTest(engine, BOARD), learned(BOARD)
    assert test.measure(circuit, evaluation(0)) == {"wrong": 0, "wrong_later": 0, "wrong_large": 0}
    still = keeper(8)
    assert not test.is_proved(still)
    assert test.has_wrong_start(still)
    assert all(test.measure(still, evaluation(0)).values())
    asynchronous = SuccessTest(engine, presets.get("checkerboard-async"))
    measured = asynchronous.measure(still, evaluation(0))
    (shares,) = measured["wrong_shares"]
    assert len(shares) == 3
    assert all(0.4 < share < 0.6 for share in shares)
    assert measured["stay_wrong"] > 0
    assert not asynchronous.is_right(measured)


def test_asynchronous_board_must_be_right_on_other_sizes() -> None:
    """This one was called solved: right on its own grid, and wrong along the border of every other."""
    robust = recipes.applied("robust", presets.get("checkerboard-async"))
    config = robust.with_(seed=8002, model={"candidates": 1})
    test, circuit = SuccessTest(open_engine("cpu"), config), learned(config, BORDER)
    measured = test.measure(circuit, evaluation(0))
    assert measured["wrong_shares"][0] == [0, 0, 0]
    assert all(share > success.MOST_WRONG for share in measured["wrong_shares"][1])
    assert not test.is_right(measured)
    assert not test.chosen(circuit, job.probes(config))


def test_images_and_rules_are_tested_on_their_evaluation_grids() -> None:
    for preset in ("lizard", "game-of-life"):
        config = presets.get(preset)
        test = SuccessTest(ENGINE, config)
        probes: Bits = job.probes(config)
        assert test.chosen(keeper(1), probes)
        assert test.measure(keeper(1), evaluation(3)) == {"wrong": 3}
