"""Page of a controller: its pole moves as in gymnasium, and other observations are set by hand."""

import json

import numpy as np
import pytest

from difflogic.circuits.export import formats, html
from difflogic.errors import ExportError
from difflogic.model.controller import Controller
from tests.controllers import linear_rule, random_controller
from tests.programs import needs

STEPS = """<script>
(async () => {
    player.pause();
    const given = GIVEN, states = [];
    for (const [start, actions] of given) {
        let now = start;
        for (const action of actions) states.push((now = stepped(now, action)), [Number(fallen(now))]);
    }
    await fetch("report", { method: "POST", body: JSON.stringify({ states }) });
})();
</script>
</body>"""


def page_of(controller: Controller) -> str:
    page = formats.export(controller, "rule", "html")["rule.html"]
    assert isinstance(page, str)
    return page


def test_pole_moves_as_in_gymnasium() -> None:
    needs("chromium")
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(1)
    given = [
        (rng.uniform(-1, 1, 4).tolist(), actions.tolist()) for actions in [*rng.integers(0, 2, (20, 30)), np.ones(50)]
    ]
    expected: list[list[float]] = []
    for start, actions in given:
        env.reset(seed=1)
        env.state = np.array(start)
        for action in actions:
            env.steps_beyond_terminated = None  # it goes on behind its end, as equations do
            _, _, terminated, _, _ = env.step(int(action))
            expected += [[float(value) for value in env.state], [float(terminated)]]
    page = page_of(linear_rule()).replace("</body>", STEPS.replace("GIVEN", json.dumps(given)))
    with html.serving(page, html.WINDOWS["phone"]) as server, html.browser(f"http://127.0.0.1:{server.server_port}/"):
        found = server.reports.get(timeout=120)["states"]
    assert len(found) == len(expected)
    # The order of the operations is the same; sine and cosine may differ in their last bit.
    assert all(np.allclose(one, other, rtol=0, atol=1e-9) for one, other in zip(found, expected, strict=True))


def test_observations_of_another_environment_are_set_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("chromium")
    monkeypatch.setattr(html, "WINDOWS", {"phone": html.WINDOWS["phone"]})
    controller = random_controller(9, (9, 12), (2, 3), actions=4)
    page = page_of(controller)
    assert '"pole": false' in page
    assert formats.verify(controller, "rule", "html", {"rule.html": page})
    wrong = page.replace("observation[d] >= threshold", "observation[d] > threshold")
    assert wrong != page
    with pytest.raises(ExportError, match="the page differs from the controller at"):
        formats.verify(controller, "rule", "html", {"rule.html": wrong})


def test_page_makes_no_request() -> None:
    page = page_of(linear_rule())
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "connect-src 'self'" in page
