"""A server with limits, for two owners."""

from collections.abc import Iterator

import pytest

from difflogic.serve.api.settings import ServeSettings
from tests.serve.live import Live, serving
from tests.serve.security.asking import CAPS


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(tmp_path_factory.mktemp("store"), ServeSettings(caps=CAPS)) as running:
        yield running
