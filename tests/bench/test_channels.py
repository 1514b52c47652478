"""The drawing of a large circuit's channels says what they read, here of a circuit that is known by heart."""

from benchmarks.channels import PLACES, arrows, read_by
from benchmarks.store import CHECKOUT
from difflogic.circuits.readers import source


def test_the_checkerboard_is_read_as_its_page_tells():
    netlist = source.load(CHECKOUT / "benchmarks/circuits/checkerboard.json").netlist
    picture, two, three = (netlist.origin.index(channel) for channel in (0, 2, 3))
    gates, places = read_by(netlist, picture)
    named = {channel: {PLACES[each] for each in found} for channel, found in places.items()}
    assert gates == 3
    assert named == {two: {"below left", "above left", "below right"}, three: {"below left"}}
    assert read_by(netlist, two) == (0, {picture: [PLACES.index("below left")]})
    assert read_by(netlist, three) == (0, {picture: [PLACES.index("above left")]})
    assert {(before, channel, read) for before, channel, read, _ in arrows(netlist)} == {
        (0, picture, two), (0, picture, three), (1, two, picture), (1, three, picture)
    }  # fmt: skip
