"""Fixtures and hooks for all tests: results are reproducible, and no floating point error is silent."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from difflogic.runs import plots
from difflogic.system.cache import user_cache

# Without a database a run leaves nothing in the checkout; on a server it must fail the same way twice.
settings.register_profile("local", deadline=None, database=None, max_examples=30)
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


# Mesa's software GPU compiles a shader for 8 cells at once in three times the time that it takes for 4, and a test
# computes little with it. It reads this when the first device is opened, and so do child processes.
os.environ.setdefault("LP_NATIVE_VECTOR_WIDTH", "128")

# Of the time that it takes to read 6,700 tests, two fifths went to looking for garbage among them, again and again.
gc.disable()

_PAINTED = plots._png
_PARITY = (
    *("tests/cpu/test_different_cells", "tests/cpu/test_hard_rollouts", "tests/cpu/test_simulation"),
    *("tests/engines/", "tests/gpu/test_function", "tests/gpu/test_kernels", "tests/gpu/test_precision"),
    *("tests/gpu/test_simulation", "tests/gpu/test_tasks", "tests/reference/"),
    *("tests/tensor/test_gpu", "tests/tensor/test_gradients", "tests/tensor/test_logic"),
    "tests/circuits/test_simulation_engines",
)
"""Files marked `parity`: engines against the reference, and the reference against definitions and the authors."""
_FIRST = ("bench", "train", "circuits", "house", "cli")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files that processes share: folders with long files first, and at first every other file the service's.

    Tests of the service wait half of their time, for workers and browsers, while another process computes. And no
    process has a long file left when the others are done.
    """
    for item in items:
        if item.nodeid.startswith(_PARITY):
            item.add_marker("parity")
    rooms = {f"tests/{room}/": place for place, room in enumerate(_FIRST)}
    items.sort(key=lambda item: next((rooms[each] for each in rooms if item.nodeid.startswith(each)), len(rooms)))
    files = dict.fromkeys(item.nodeid.partition("::")[0] for item in items)
    waiting = [file for file in files if file.startswith("tests/serve/")]
    places = {file: 2 * place for place, file in enumerate(waiting)}
    places |= {file: 2 * place + 1 for place, file in enumerate(each for each in files if each not in places)}
    items.sort(key=lambda item: places[item.nodeid.partition("::")[0]])


def pytest_collection_finish() -> None:
    """From here on there is garbage, but none among what has been read so far: it is left out of each look."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def users_cache_is_untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Caches last for the session, results of self-tests included; only compiled code and fonts are the user's own."""
    own, folder = user_cache(), tmp_path_factory.mktemp("cache")
    for name, link in (("numba", "difflogic"), ("matplotlib", "matplotlib")):
        (own / name).mkdir(exist_ok=True)
        (folder / link).symlink_to(own / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIFFLOGIC_CACHE_DIR", str(folder))
        patch.setenv("NUMBA_CACHE_DIR", str(folder))
        patch.setenv("MPLCONFIGDIR", str(folder / "matplotlib"))
        yield


@pytest.fixture(autouse=True, scope="session")
def diagrams_are_blank() -> Iterator[None]:
    """A tiny run draws its curves for twice as long as it trains. They are composed, but not painted.

    Child processes paint, and so does tests/runs/test_plots.py: every diagram that there is.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "_png", lambda _: plots.picture_png(np.zeros((1, 1, 3), dtype=np.uint8)))
        yield


@pytest.fixture(autouse=True, scope="session")
def nothing_waits_for_the_disk() -> Iterator[None]:
    """A run waits for it some fifty times, in case the power fails, which it does in no test. Child processes wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def painted() -> Iterator[None]:
    """Diagrams as users see them, to the end of the module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "_png", _PAINTED)
        yield


@pytest.fixture(autouse=True, scope="session")
def signals_are_handled() -> Iterator[None]:
    """Restore the signals that a background job of a script (SIGINT) or `nohup` (SIGHUP) ignores, for children too."""
    handlers = {signal.SIGINT: signal.default_int_handler}
    if sys.platform != "win32":
        handlers[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def floating_errors_raise() -> Iterator[None]:
    """Underflow is left out: gradients of saturated gates reach it rightly."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own for what is kept between runs."""
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
