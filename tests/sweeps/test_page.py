"""Page of a sweep: complete without scripts and network, and accessible."""

import os
import re
from pathlib import Path

import pytest

from difflogic.sweeps import page
from difflogic.sweeps.course import Sweep, Trial
from difflogic.sweeps.trial import Outcome
from tests.programs import needs
from tests.serve.chromium import chromium
from tests.serve.test_page import barriers
from tests.sweeps.here import described

PHONE = 390


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The page of four trials: two with a value, one without, one that failed."""
    over = {"optimizer.lr": "0.01:1:log", "optimizer.clip_by": ["element", "norm"]}
    spec = described(over, method="random", trials=9)
    trials = [
        Trial(number, {"optimizer.lr": lr, "optimizer.clip_by": by}, status, value, Outcome("complete", error=error))
        for number, (lr, by, status, value, error) in enumerate(
            [
                (0.02, "element", "complete", 40.0, ""),
                (0.5, "norm", "complete", 7.0, ""),
                (0.1, "norm", "complete", None, ""),
                (0.2, "norm", "failed", None, "<b>no</b> room"),
            ]
        )
    ]
    file = tmp_path / "index.html"
    file.write_text(page.html(Sweep(tmp_path, spec, trials)))
    return file


def test_what_it_holds(written: Path) -> None:
    text = written.read_text()
    assert not re.search(r"https?:|//[a-z]", re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL))
    rows = re.findall(r'<tr[^>]*data-trial="(\d+)"', text)
    assert rows == ["1", "0", "2", "3"]
    assert len(re.findall("<polyline", text)) == 3
    assert "&lt;b&gt;no&lt;/b&gt; room" in text


def test_it_can_be_read_sorted_and_pointed_at(written: Path) -> None:
    needs("chromium")
    if os.environ.get("CI") is None:
        pytest.importorskip("axe_core_python")
    with chromium() as browser:
        for dark in (False, True):
            shown = browser.page(dark=dark)
            shown.goto(written.as_uri())
            assert barriers(shown) == []
        order = "[...document.querySelectorAll('tbody tr')].map((row) => row.dataset.trial).join()"
        shown.click("thead th:nth-child(2) button")
        assert shown.js(order) == "0,2,3,1"
        shown.click("thead th:nth-child(2) button")
        assert shown.js(order) == "1,3,2,0"
        shown.js("document.querySelector('tbody a').focus()")
        assert shown.js("document.querySelector('polyline.shown').id") == "line-1"
        phone = browser.page(width=PHONE, height=800)
        phone.goto(written.as_uri())
        assert phone.js("document.documentElement.scrollWidth") <= PHONE
