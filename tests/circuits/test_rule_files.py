"""Rules of several states: tables and trees of `.rule` files against a plain interpreter, and files that are none."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from difflogic.actions.simplify import simplify
from difflogic.circuits import rle
from difflogic.circuits.export import golly, html
from difflogic.circuits.readers import rule, rule_file, source
from difflogic.circuits.simulation import pictures
from difflogic.cli.options import PATH
from difflogic.config import customise
from difflogic.config.request import TrainRequest
from difflogic.core import rules, wiring
from difflogic.core.bits import pack_planes
from difflogic.errors import CircuitError
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist

TABLE = """@RULE Mine
two words of a remark
@TABLE
n_states:{states}
neighborhood:{around}
symmetries:{symmetry}
var a={{0,1,2}}   # a remark
var b={{a,3}}
var c=b
{lines}
@COLORS
1 0 255 0
2 9 8 300
"""


def next_states(netlist: CellNetlist, cells: np.ndarray) -> np.ndarray:
    grids = cells.reshape(-1, 3, 3, 1) >> np.arange(netlist.channels) & 1
    return rle.numbers(netlist.rollout(grids.astype(np.uint8), 1)[-1])[:, 1, 1]


def interpreted(transitions: list[list[str]], order: list[tuple[int, ...]], cells: np.ndarray) -> int:
    """Return the result of the first transition that matches in any of the orders of its cells."""
    members = {"a": {0, 1, 2}, "b": {0, 1, 2, 3}, "c": {0, 1, 2, 3}}
    for *words, result in transitions:
        for turn in order:
            bound: dict[str, int] = {}
            for word, place in zip(words, turn, strict=True):
                state = int(cells[place])
                if state not in members.get(word, {int(word) if word.isdigit() else -1}):
                    break
                if bound.setdefault(word, state) != state:
                    break
            else:
                return bound[result] if result in bound else int(result)
    return int(cells[wiring.CENTRE])


@pytest.mark.parametrize("symmetry", ["none", "rotate4", "rotate4reflect", "permute"])
def test_table_applies_its_first_match(symmetry: str) -> None:
    random = np.random.default_rng(len(symmetry))
    alphabet = ["0", "1", "2", "3", "a", "b", "c"]
    transitions = [[*random.choice(alphabet, 5), ""] for _ in range(12)]
    for transition in transitions:
        names = [word for word in transition if word.isalpha()]
        transition[-1] = random.choice([*names, "0", "1", "2", "3"])
    text = TABLE.format(states=4, around="vonNeumann", symmetry=symmetry,
                        lines="\n".join(map(",".join, transitions)))  # fmt: skip
    held = rule_file.read(text)
    assert (held.states, held.neighbourhood, held.colours) == (4, "von-neumann", {1: (0, 255, 0), 2: (9, 8, 255)})
    ring = (1, 5, 7, 3)
    turns = [ring[k:] + ring[:k] for k in range(4)] if symmetry != "none" else [ring]
    if symmetry.endswith("reflect"):
        turns += [turn[::-1] for turn in turns]
    if symmetry == "permute":
        turns = list(permutations(ring))
    cells = random.integers(0, 4, (400, 9))
    expected = [interpreted(transitions, [(4, *turn) for turn in turns], each) for each in cells]
    netlist = CellNetlist.build(2, True, [], [], [4, 4], neighbourhood="von-neumann")
    netlist = rule.to_netlist(rule._of_file(held), netlist)
    np.testing.assert_array_equal(next_states(netlist, cells), expected)


def moved_by(text: str, folder: Path) -> CellNetlist:
    (folder / "Mine.rule").write_text(text)
    return source.load(folder / "Mine.rule").netlist


@pytest.mark.parametrize("name", ["wireworld", "B2/S/C3", "B3/S23History", "table", "B2/S34H", "W110", "B13/S01V"])
def test_exported_rule_is_read_back(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    entries = random.integers(0, 2, 512, dtype=np.uint8)
    entries[0] = 0
    given = source.load(rules.name(entries) if name == "table" else name).netlist
    text = golly.export(given, "mine")["mine_ca.rule"]
    assert isinstance(text, str)
    back = moved_by(text, tmp_path)
    assert (back.channels, back.neighbourhood) == (given.channels, given.neighbourhood)
    cells = random.integers(0, 1 << given.channels, (2000, 9))
    np.testing.assert_array_equal(next_states(back, cells), next_states(given, cells))


@pytest.mark.parametrize(("notation", "states"), [("23/3/8", 8), ("345/2/5", 5), ("/2/3H", 3)])
def test_dying_cells_count_up(notation: str, states: int) -> None:
    held = rules.parse(notation)
    cells = np.random.default_rng(1).integers(0, states, (500, 9))
    alive = held.table[(cells == 1) @ (1 << np.arange(9)[::-1])]
    own = cells[:, wiring.CENTRE]
    expected = np.where(own == 0, alive, np.where((own == 1) & (alive == 1), 1, (own + 1) % states))
    np.testing.assert_array_equal(next_states(source.load(notation).netlist, cells), expected)


def test_history_keeps_marks_and_its_boundary() -> None:
    """Births keep a mark, a living cell beside state 6 dies, and 6 stays."""
    netlist = source.load("LifeHistory").netlist
    cases = [(0, 111, 1), (2, 135, 1), (4, 111, 3), (1, 100, 2), (3, 110, 3), (3, 0, 4), (5, 111, 5), (5, 0, 4),
             (1, 116, 2), (3, 116, 4), (0, 222, 0), (6, 111, 6), (2, 0, 2), (4, 0, 4)]  # fmt: skip
    cells = np.array([[*map(int, f"{around:03}"), 0, centre, 0, 0, 0, 0] for centre, around, _ in cases])
    assert next_states(netlist, cells).tolist() == [after for *_, after in cases]


def test_notation_names_the_grid() -> None:
    config = customise.configure(TrainRequest("game-of-life", rule="B36/S23:P30,20")).config
    assert (config.task.rule, config.task.height, config.task.width) == ("B36/S23:P30,20", 20, 30)
    assert not config.model.periodic
    netlist = source.load("b3/s23:P30,20").netlist
    assert netlist.scenario is not None
    assert (netlist.periodic, netlist.scenario.height, netlist.scenario.width) == (False, 20, 30)


def test_map_keeps_the_slashes_that_a_path_would_merge() -> None:
    entries = np.ones(512, dtype=np.uint8)
    entries[[0, 200]] = 0
    notation = f"{rules.name(entries)}:T9,9"
    assert "//" in notation
    assert source.load(notation).netlist.scenario is not None
    np.testing.assert_array_equal(next_states(source.load(notation).netlist, rules.patches()), entries)
    assert PATH.convert(notation, None, None) == Path(notation.replace("/", "_"))


def test_rule_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Mine.rule").write_text(TABLE.format(states=4, around="Moore", symmetry="permute", lines="0100000001"))
    assert source.load("Mine").netlist.channels == 2
    assert not source.load("Mine:P9,9").netlist.periodic


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("n_states:4", "n_states:300"), "A rule must have 2 to 256 states, got '300'."),
        (("Moore", "Margolus"), "Unsupported neighbourhood 'Margolus': expected moore, "),
        (("rotate8", "rotate5"), "Unsupported symmetry 'rotate5' for this neighbourhood."),
        (("0,1,2}", "0,9}"), "Expected a state from 0 to 3 or a variable, got '9'."),
        (("1,a", "1"), "A transition must have 10 states, got"),
        (("0,3\n", "0,b\n"), "A transition must lead to one state, got"),
        (("@TABLE", "@TREE"), "The rule does not specify its num_states."),
        (("@TABLE", "@PYTHON"), "Expected @TABLE or @TREE in the rule, got neither."),
    ],
)
def test_file_that_is_no_rule_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = TABLE.format(states=4, around="Moore", symmetry="rotate8", lines="1,a,0,0,0,0,0,0,0,3")
    assert rule_file.read(text).states == 4
    with pytest.raises(CircuitError) as raised:
        moved_by(text.replace(*change), tmp_path)
    assert message in str(raised.value)


def test_colours_of_a_rule_reach_pictures_and_exports(tmp_path: Path) -> None:
    text = TABLE.format(states=4, around="Moore", symmetry="none", lines="")
    netlist = netlist_json.from_json(netlist_json.to_json(simplify(moved_by(text, tmp_path)).netlist))
    assert netlist.colours == ((48, 48, 48), (0, 255, 0), (9, 8, 255), (255, 255, 0))
    grid = np.array([[0, 1], [2, 3]])[..., None] >> np.arange(2) & 1
    planes = pack_planes(grid.astype(np.uint8))
    shown = pictures.picture(planes, 2, 2, palette=netlist.palette)
    assert shown.reshape(-1, 3).tolist() == [list(colour) for colour in netlist.colours]
    assert "[9, 8, 255]" in html.export(netlist, "mine")["mine.html"]
    assert rule_file.read(golly.export(netlist, "mine")["mine_ca.rule"]).colours[2] == (9, 8, 255)
    with pytest.raises(CircuitError, match="colours must be"):
        netlist_json.from_json(netlist_json.to_json(netlist).replace("[9, 8, 255]", "[9, 8]"))


@pytest.mark.parametrize("seed", range(4))
def test_random_table_is_read_back_from_its_rule_file(tmp_path: Path, seed: int) -> None:
    entries = np.random.default_rng(seed).integers(0, 2, 512, dtype=np.uint8)
    entries[0] = 0  # Golly has no rule under which empty space is born
    file = tmp_path / "mine.rule"
    file.write_text(golly.export(rule.rule_netlist(rules.name(entries), True), "mine")["mine_ca.rule"])
    grids = rules.patches().reshape(512, 3, 3, 1)
    found = rule.rule_netlist(str(file), True).rollout(grids, 1)[-1][:, 1, 1, 0]
    np.testing.assert_array_equal(found, entries)


def test_rule_is_found_by_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "expanduser", _homeless)
    assert rule_file.find("No-Such-Rule", tmp_path) is None
    (tmp_path / "Mine.rule").write_text("@TABLE\n")
    assert rule_file.find("Mine", tmp_path) == tmp_path / "Mine.rule"


def _homeless(path: Path) -> Path:
    if path.parts[:1] == ("~",):
        raise RuntimeError("Could not determine home directory.")
    return path
