"""Netlists that no one designed: any gate may read any earlier bit."""

import numpy as np
from hypothesis import strategies as st

from difflogic.core import wiring
from difflogic.core.text_picture import encode
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import STARTS, Scenario


def random_netlist(
    rng: np.random.Generator,
    count: int,
    channels: int = 1,
    periodic: bool = False,
    reach: int | None = None,
    neighbourhood: str = "moore",
) -> CellNetlist:
    """`count` gates; each reads the `reach` bits before it, all of them where it is None."""
    inputs = 9 * channels
    ends = inputs + np.arange(count)
    cells = np.array(wiring.NEIGHBOURHOODS[neighbourhood])

    def within(bits: np.ndarray) -> np.ndarray:
        """Inputs beyond the neighbourhood become others of it."""
        return np.where(bits < inputs, bits - bits % 9 + cells[bits % 9 % len(cells)], bits)

    starts = np.zeros(count, dtype=np.int64) if reach is None else np.maximum(0, ends - reach)
    return CellNetlist.build(
        channels=channels,
        periodic=periodic,
        gates=rng.integers(0, 16, count),
        wires=within(np.stack([rng.integers(starts, ends) for _ in range(2)], axis=1)),
        outputs=within(rng.integers(0, inputs + count, channels)),
        visible=int(rng.integers(1, channels + 1)),
        origin=np.sort(rng.permutation(3 * channels)[:channels]).tolist(),
        scenario=random_habitat(rng),
        neighbourhood=neighbourhood,
    )


def random_habitat(rng: np.random.Generator) -> Scenario | None:
    """None, or any start on a small grid."""
    start = rng.choice([*STARTS, "unknown"])
    if start == "unknown":
        return None
    height, width = rng.integers(1, 9, 2).tolist()
    picture = encode(rng.integers(0, 2, (height, width, 3), dtype=np.uint8)) if start == "picture" else ()
    rate = float(rng.choice([1.0, 0.6]))
    return Scenario(str(start), height, width, int(rng.integers(1, 30)), rate, picture)


@st.composite
def netlists(draw: st.DrawFn, most: int = 40) -> CellNetlist:
    """C 1..3, up to `most` gates, near or far wires, some channels dropped before."""
    return random_netlist(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        count=draw(st.integers(0, most)),
        channels=draw(st.integers(1, 3)),
        periodic=draw(st.booleans()),
        reach=draw(st.sampled_from([None, 12])),
        neighbourhood=draw(st.sampled_from(list(wiring.NEIGHBOURHOODS))),
    )


def same(one: CellNetlist, other: CellNetlist) -> bool:
    scalars = ("channels", "periodic", "visible", "origin", "scenario", "neighbourhood")
    arrays = ("gates", "wires", "outputs")
    return all(getattr(one, name) == getattr(other, name) for name in scalars) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )
