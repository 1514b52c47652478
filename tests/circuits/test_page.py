"""Page of an automaton: it heals as the circuit does, and opens from a file without WebGPU."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from difflogic.circuits.export import formats, html
from difflogic.circuits.synthesis.function import live_gates
from difflogic.errors import ExportError, ToolError
from difflogic.model.cell_netlist import CellNetlist
from tests.experiments import checkerboard_target
from tests.export_cases import life, published, tangled
from tests.programs import needs

HEAL = """<script>
(async () => {
    await ready;
    figure.pause();
    await automaton.resize(16, 16);
    await automaton.advance(30);
    const grown = Array.from(automaton.state);
    element("damage").click();
    await automaton.busy;
    const hurt = Array.from(automaton.state);
    await automaton.advance(30);
    const healed = Array.from(automaton.state);
    await fetch("report", { method: "POST", body: JSON.stringify({ grown, hurt, healed }) });
})();
</script>
</body>"""

LIVE = """<script>
(async () => {
    await ready;
    while (automaton.steps < 4) await new Promise(requestAnimationFrame);
    const { steps, engine } = automaton, message = element("message").textContent;
    const body = JSON.stringify({ steps, engine: engine.name, message, protocol: location.protocol });
    await fetch("ADDRESS/report", { method: "POST", mode: "no-cors", body });
})();
</script>
</body>"""


def page_of(netlist: CellNetlist) -> str:
    page = formats.export(netlist, "board", "html")["board.html"]
    assert isinstance(page, str)
    return page


def test_page_grows_is_damaged_and_heals() -> None:
    needs("chromium")
    board = published()
    with (
        html.serving(page_of(board).replace("</body>", HEAL), html.WINDOWS["phone"]) as server,
        html.browser(f"http://127.0.0.1:{server.server_port}/"),
    ):
        report = server.reports.get(timeout=120)
    grids = {name: html.grid_of(np.array(words, np.uint32), 16, 16, 3) for name, words in report.items()}
    target = checkerboard_target(16, 16)[..., 0]
    assert np.array_equal(grids["grown"][..., 0], target)
    assert not grids["hurt"][6:10, 6:10].any()
    assert np.array_equal(grids["healed"][..., 0], target)


def test_page_runs_from_a_file_without_webgpu(tmp_path: Path) -> None:
    needs("chromium")
    path = tmp_path / "board.html"
    without = [flag for flag in html.FLAGS if "webgpu" not in flag]
    with html.serving("", html.WINDOWS["desktop"]) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        page = page_of(published()).replace("connect-src 'self'", f"connect-src {address}")
        path.write_text(page.replace("</body>", LIVE.replace("ADDRESS", address)))
        with html.browser(path.as_uri(), without):
            report = server.reports.get(timeout=120)
    assert report["protocol"] == "file:"
    assert report["engine"] == "js"
    assert "JavaScript computes." in report["message"]
    assert report["steps"] > 3


@pytest.mark.parametrize("gates", [5, 500])
def test_page_makes_no_request(gates: int) -> None:
    page = page_of(tangled(gates))
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert re.search(rf'"gates": {live_gates(tangled(gates))}\b', page)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("left |= state[first + word - 1] >>> 31", "left |= 0", "The page in JavaScript differs from the circuit"),
        ("var left = middle << 1u", "var left = middle << 2u", "The page in WebGPU differs from the circuit"),
        ('<link rel="icon" href="data:,">', '<link rel="icon" href="there.png">', "it requested|blocked"),
        ('aria-label="The current state.', 'data-text="The current state.', "has a name"),
        ("ready = begin()", "ready = begin(); undefined.x", "Cannot read properties"),
    ],
    ids=["JavaScript", "shader", "request", "label", "error"],
)
def test_error_on_a_page_is_detected(old: str, new: str, sentence: str) -> None:
    needs("chromium")
    page = page_of(life())
    stem = json.dumps(old)[1:-1] if old.startswith("var") else old
    assert page.count(stem) == 1
    with pytest.raises(ExportError, match=sentence):
        html.verify(life(), "board", {"board.html": page.replace(stem, new)})


def test_silent_browser_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("chromium")
    monkeypatch.setattr(html, "_SECONDS", 0.01)
    with pytest.raises(ToolError, match="chromium did not report within"):
        html.verify(life(), "board", {"board.html": page_of(life())})
