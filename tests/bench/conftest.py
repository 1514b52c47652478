"""One made-up results file."""

import pytest

from difflogic.bench.results import Results
from tests.bench.made_up import make_results


@pytest.fixture
def results() -> Results:
    return make_results()
