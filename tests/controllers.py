"""Controllers that no one trained: of random gates, and a linear rule for the pole made by hand."""

import numpy as np
from hypothesis import strategies as st

from difflogic.model.controller import Controller
from difflogic.model.decision import decision
from difflogic.model.thermometer import Thermometer

Layers = list[tuple[np.ndarray, np.ndarray]]


def random_layers(rng: np.random.Generator, inputs: int, widths: tuple[int, ...]) -> Layers:
    """Any gates, on wires that use every bit of the layer before about equally."""
    layers = []
    for width in widths:
        order = np.concatenate([rng.permutation(inputs) for _ in range(-(-2 * width // inputs))])
        layers.append((order[: 2 * width].reshape(2, width), rng.integers(0, 16, width)))
        inputs = width
    return layers


def of_layers(thresholds, layers, actions, *names, **named) -> Controller:
    """The controller of a policy's layers; the names are those of `Controller.from_gates`."""
    thermometer = Thermometer(tuple(map(tuple, thresholds)))
    count = actions if isinstance(actions, int) else len(actions)
    return Controller.from_gates(thermometer, decision(thermometer.bits, layers, count), actions, *names, **named)


def random_controller(
    seed: int, widths: tuple[int, ...] = (32, 32), dims: tuple[int, ...] = (7,) * 4, actions: int = 2
):
    """Return random gates, by default as many as in a policy for the pole: 28 thermometer bits, two layers of 32."""
    rng = np.random.default_rng(seed)
    thresholds = [np.sort(rng.normal(size=count)) for count in dims]
    return of_layers(thresholds, random_layers(rng, sum(dims), widths), actions)


def remembering_controller(seed: int, memory: int = 3) -> Controller:
    """Two numbers, three actions and some bits of memory, by random gates."""
    rng = np.random.default_rng(seed)
    thresholds = *(tuple(np.sort(rng.normal(size=count))) for count in (4, 3)), *((0.5,),) * memory
    layers = random_layers(rng, 7 + memory, (20,))
    gates = decision(7 + memory, [*layers, *random_layers(rng, 20, (12 + memory,))], 3, memory)
    return Controller.from_gates(Thermometer(thresholds), gates, 3, memory=memory)


@st.composite
def controllers(draw: st.DrawFn) -> Controller:
    """One to three dimensions of up to four thresholds, two to five actions."""
    dims = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).filter(any)))
    actions = draw(st.integers(2, 5))
    widths = (draw(st.integers(1, 12)), actions * draw(st.integers(1, 4)))
    return random_controller(draw(st.integers(0, 2**32 - 1)), widths, dims, actions)


def linear_rule() -> Controller:
    """To the right where more thresholds of the angle and its velocity are reached than not: it holds the pole."""
    reach = (2.0, 1.5, 0.15, 1.5)
    used = range(14, 28)
    # The left counts seven ones; the right the bits of angle and angular velocity. A second layer passes all on.
    gates = [15] * 7 + [0] * 9 + [3] * 14 + [0] * 2
    wires = [[0] * 16 + list(used) + [0] * 2] * 2
    passed = [list(range(32))] * 2, [3] * 32
    return of_layers(
        [np.linspace(-end, end, 7).tolist() for end in reach],
        [(wires, gates), passed],
        ("left", "right"),
        ("position", "velocity", "angle", "spin"),
        "CartPole-v1",
        "1.4.0",
    )


def observations(controller: Controller, rng: np.random.Generator, count: int) -> np.ndarray:
    """Float64 `[N, D]`: around the thresholds, on them, beside them, far away, and what is no finite number."""
    columns = []
    for values in controller.thermometer.thresholds:
        places = np.array([0.0, *values])
        chosen = rng.choice(places, count)
        near = [chosen, np.nextafter(chosen, -np.inf), np.nextafter(chosen, np.inf), chosen + rng.normal(size=count)]
        odd = [np.full(count, value) for value in (np.inf, -np.inf, np.nan, 1e300, -1e300, 5e-324)]
        every = np.stack([*near, *near, *near, *odd])
        columns.append(every[rng.integers(0, len(every), count), np.arange(count)])
    return np.stack(columns, axis=1)
