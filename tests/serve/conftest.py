"""A store to try things on, with a clock that goes when it is told to."""

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from difflogic.serve.store import mount
from difflogic.serve.store.jobs import JobSpec
from difflogic.serve.store.store import Store
from tests.cli.conftest import said  # noqa: F401 (a fixture)
from tests.serve.live import Live, serving
from tests.serve.service import by_hand, short_config
from tests.train.tiny import tiny_config


class Clock:
    """Seconds since 1970, by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="session", autouse=True)
def any_mount() -> Iterator[None]:
    """Tests may run in a container, on its own mount."""
    with pytest.MonkeyPatch.context() as context:
        context.setenv(mount.ALLOW, "1")
        yield


@pytest.fixture(autouse=True)
def no_log_after_a_test() -> Iterator[None]:
    """A command that ran in this process has sent its log to a stream that is closed when the test is over."""
    loggers = [logging.getLogger(name) for name in ("difflogic.serve", "uvicorn", "uvicorn.error")]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    yield
    for each, (handlers, propagate, level) in zip(loggers, before, strict=True):
        each.handlers, each.propagate = handlers, propagate
        each.setLevel(level)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    opened = Store.open(tmp_path / "store")
    opened.clock = opened.wall_clock = clock
    return opened


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A server without workers."""
    with serving(tmp_path / "store") as running:
        yield running


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    with live.client() as made:
        yield made


@pytest.fixture
def spec() -> JobSpec:
    return JobSpec("train", "tiny", tiny_config().to_dict())


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The CPU engine, compiled before real workers need it.

    The first time on a machine takes minutes, in which a worker shows no sign of life. Here nothing waits for it.
    """
    by_hand(tiny_config(epochs=2, eval_interval=1), tmp_path_factory.mktemp("hand") / "run")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return by_hand(short_config(), tmp_path_factory.mktemp("hand") / "run")
