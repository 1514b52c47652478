"""In-browser training, as a visitor meets it: in Chromium, with real keys, clicks and files."""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from difflogic.circuits.export import html
from difflogic.config import picture_file
from difflogic.config.schema import Config
from difflogic.core import rules
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.page.bundle import joined
from difflogic.page.export import training_page
from tests.export_cases import life, tangled
from tests.programs import needs
from tests.serve.chromium import Browser, Page, barriers, chromium

SIDE = 12
PHONE = (390, 844)
SHOWN = ("checkerboard-small", "game-of-life", "draw-small")
STATE = "document.body.dataset.state"
KEPT = """if (window.GPUAdapter) {
const open = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (...given) {
    return (window.device = await open.apply(this, given));
}; }"""
"""Script that stores the page's GPU device, so that a test can lose it."""

Opened = Callable[..., Page]


def module(path: str) -> str:
    """Return the expression that imports a module of the package in a page."""
    return f"import({json.dumps('data:text/javascript,' + quote(joined(path)))})"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    needs("chromium")
    file = tmp_path_factory.mktemp("page") / "train.html"
    file.write_text(training_page(SHOWN))
    return file.as_uri()


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Browser]:
    with chromium(webgpu=True) as running:
        yield running


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Opened]:
    """Pages that make no request and show no error."""
    pages: list[Page] = []

    def open_one(state: str = "ready", first: str = "", **wishes: Any) -> Page:
        page = browser.page(**wishes)
        page.call("Network.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=first)
        page.goto(address)
        page.wait(f"{STATE} === '{state}'")
        pages.append(page)
        return page

    before = len(browser.heard)
    yield open_one
    asked = [
        each["params"]["request"]["url"]
        for each in browser.heard[before:]
        if each["method"] == "Network.requestWillBeSent"
    ]
    assert {each for each in asked if not each.startswith(("data:", "blob:", "about:"))} <= {address}
    for page in pages:
        assert page.problems() == []
        page.close()


def choose(page: Page, name: str) -> None:
    page.js(f"document.querySelector('#tasks [value=\"{name}\"]').click()")
    page.wait(f"{STATE} === 'ready'")


COPY = """(() => { const canvas = document.getElementById("NAME"), { width, height } = canvas;
const context = new OffscreenCanvas(width, height).getContext("2d");
context.drawImage(canvas, 0, 0);
return [height, width, Array.from(context.getImageData(0, 0, width, height).data)]; })()"""


def cells(page: Page, canvas: str = "target") -> np.ndarray:
    """Return the content of a canvas, `[H, W]`, as colours 0 to 7."""
    height, width, data = page.js(COPY.replace("NAME", canvas))
    bits = np.array(data).reshape(height, width, 4)[..., :3] > 127
    return bits @ np.array([1, 2, 4])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), PHONE], ids=["desk", "phone"])
def test_it_can_be_read_before_anything_is_trained(opened: Opened, dark: bool, size: tuple[int, int]) -> None:
    page = opened(dark=dark, width=size[0], height=size[1])
    assert "No graphics card is available here" in page.text("#notice")
    assert page.js("document.querySelector('#tasks input:checked').value") == "Board"
    assert not page.js("document.getElementById('curves').checkVisibility()")
    for name in ("Board", "Life", "Your own"):
        choose(page, name)
        page.js("document.querySelectorAll('details').forEach((each) => each.open = true)")
        assert barriers(page) == [], name
        assert page.js("document.documentElement.scrollWidth") <= size[0], name


def test_a_phone_is_told_what_to_expect(opened: Opened) -> None:
    card = "Object.defineProperty(GPUAdapterInfo.prototype, 'isFallbackAdapter', { get: () => false });"
    finger = """const real = matchMedia;
        window.matchMedia = (query) => (query.includes("coarse") ? { matches: true } : real(query));"""
    page = opened(width=PHONE[0], height=PHONE[1], first=card + finger)
    assert page.text("#notice").startswith("Training takes long on a phone")


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        ("Object.defineProperty(navigator, 'gpu', { value: undefined });", "This browser has no WebGPU"),
        (
            "if (window.GPU) GPU.prototype.requestAdapter = async () => null;",
            "graphics card that it may use: switch on",
        ),
        (
            "if (window.GPUAdapter) GPUAdapter.prototype.requestDevice = async () => { throw new Error('too few'); };",
            "less than WebGPU's usual limits: too few.",
        ),
    ],
    ids=["no WebGPU", "no adapter", "limits"],
)
def test_recorded_board_plays_without_device(opened: Opened, first: str, sentence: str) -> None:
    page = opened("refused", first)
    page.see(sentence, "#refusal")
    page.see("Every one of the 2^1280 starts", "#sentence")
    page.wait("parseInt(document.getElementById('steps').innerText.slice(5)) > 30")
    assert np.array_equal(cells(page, "now"), cells(page))
    assert not page.js("document.getElementById('train').checkVisibility()")
    assert barriers(page) == []


def test_a_lost_device_is_told_and_the_page_can_be_loaded_again(opened: Opened) -> None:
    page = opened(first=KEPT)
    page.click("#train")
    page.wait("document.querySelector('#curves .dot.hard')")
    page.js("window.device.destroy()")
    page.see("The graphics card was lost", "#refusal")
    page.wait(f"{STATE} === 'refused'")
    assert page.js("document.getElementById('train').disabled")
    assert barriers(page) == []
    page.js("window.device = null")
    page.click("#refusal button")
    page.wait(f"document.readyState === 'complete' && {STATE} === 'ready'")
    page.goto("about:blank")


def grey(side: int, level: int) -> Callable[[Path], Any]:
    return lambda file: Image.new("L", (side, side), level).save(file)


@pytest.mark.parametrize(
    ("name", "made", "sentence"),
    [
        ("wide.png", grey(5000, 255), "wide.png\u2069 is 5000x5000 pixels, more than 16,777,216: scale it down first."),
        (
            "drawn.svg",
            b'<svg xmlns="http://www.w3.org/2000/svg"/>',
            "drawn.svg\u2069 describes shapes instead of pixels: save",
        ),
        ("torn.png", b"\x89PNG\r\n\x1a\n" + bytes(60), "torn.png\u2069 is not an image that can be read: expected PNG"),
        ("words.txt", b"no picture", "words.txt\u2069 is not an image that can be read"),
        ("صورة.png", b"", "\u2068صورة.png\u2069 is not an image that can be read"),
        ("night.png", grey(20, 0), "has no pixel that is on: all are transparent or too dark."),
    ],
    ids=["too large", "SVG", "broken", "text", "Arabic and empty", "dark"],
)
def test_what_is_no_picture_is_refused_in_one_sentence(opened: Opened, tmp_path, name, made, sentence) -> None:
    page = opened()
    choose(page, "Your own")
    before = cells(page)
    made(tmp_path / name) if callable(made) else (tmp_path / name).write_bytes(made)
    page.drop(tmp_path / name, ".drop")
    page.see(sentence, "#refusal")
    assert page.text("#refusal").count("\n") == 0
    assert np.array_equal(cells(page), before)
    assert page.js(STATE) == "ready"


def test_a_picture_is_scaled_down_as_the_command_does_it(opened: Opened, tmp_path: Path) -> None:
    small = np.random.default_rng(3).integers(0, 256, (4, 6, 4), dtype=np.uint8)
    photograph = Image.fromarray(small).resize((300, 200), Image.Resampling.BICUBIC).convert("RGB")
    photograph.save(tmp_path / "صورة.png")
    page = opened()
    page.drop(tmp_path / "صورة.png", "#now")
    page.see("صورة.png\u2069 is 12 by 12 cells now.", "#status")
    bits = picture_file.load(tmp_path / "صورة.png", 8, (SIDE, SIDE)).bits
    above = (SIDE - bits.shape[0]) // 2
    expected = np.zeros((SIDE, SIDE), dtype=int)
    expected[above : above + bits.shape[0]] = bits @ np.array([1, 2, 4])
    # Pillow's versions round in different orders: a colour at its threshold may fall either way.
    assert (cells(page) == expected).mean() > 0.98


def test_picture_is_read_by_the_rules_of_the_command(opened: Opened, tmp_path: Path) -> None:
    ink = np.full((SIDE, SIDE, 4), 255, dtype=np.uint8)
    ink[4:6, 3:9, :3] = ink[7, 3:9, 1:3] = 0
    clear = ink.copy()
    clear[(clear[..., :3] == 255).all(axis=-1), 3] = 0
    page = opened()
    for name, pixels in (("ink.png", ink), ("clear.png", clear)):
        Image.fromarray(pixels).save(tmp_path / name)
        page.drop(tmp_path / name, "#now")
        page.see(f"{name}\u2069 is 12 by 12 cells now.", "#status")
        expected = picture_file.load(tmp_path / name).bits @ np.array([1, 2, 4])
        assert (expected[4, 3], expected[7, 3]) == (7, 1)
        assert np.array_equal(cells(page), expected)
        if name == "ink.png":
            page.see("It is dark on light and is inverted.", "#status")
            page.click("#status button")
            assert np.array_equal(cells(page), 7 - expected)


def test_pixels_are_those_of_pillow(opened: Opened) -> None:
    page, rng = opened(), np.random.default_rng(5)
    for width, height, clear in ((37, 211, False), (64, 48, True), (17, 16, True), (8, 9, False), (400, 301, False)):
        picture = Image.fromarray(rng.integers(0, 256, (5, 5, 4), dtype=np.uint8)).resize((width, height))
        if not clear:
            picture.putalpha(255)
        given = f"{{ width: {width}, height: {height}, data: Uint8Array.from({list(picture.tobytes())}) }}"
        script = f"""{module("page/picture.js")}.then(({{ fitted }}) => {{
            const {{ width, height, data }} = fitted({given}, 16, 16);
            return [width, height, Array.from(data)]; }})"""
        found = page.js(script)
        picture.thumbnail((16, 16), Image.Resampling.LANCZOS)
        assert (found[0], found[1]) == picture.size
        colour = np.array(found[2]).reshape(-1, 4).astype(int) - np.asarray(picture).reshape(-1, 4)
        seen = np.asarray(picture).reshape(-1, 4)[:, 3] > 127  # of what is nearly clear the colour is rounded much
        assert np.abs(colour[seen]).max() <= 3
        assert np.abs(colour[:, 3]).max() <= 1


def test_a_picture_is_painted_by_keys_alone(opened: Opened) -> None:
    page = opened()
    choose(page, "Your own")
    before = cells(page)
    page.tab_to("The target: 12 by 12 cells")
    page.press("ArrowUp", "ArrowRight", "6", "Enter")
    assert cells(page)[5, 7] == 6
    assert page.text(".tools [role=status]") == "Row 6, column 8: cyan. Brush: cyan."
    page.press("ArrowRight", "2", "Space", "z")
    before[5, 7] = 6
    assert np.array_equal(cells(page), before)
    page.tab_to("Clear")
    page.press("Enter")
    assert not cells(page).any()


def test_empty_drawing_is_refused(opened: Opened) -> None:
    page = opened()
    choose(page, "Your own")
    page.tab_to("Clear")
    page.press("Enter")
    page.click("#train")
    page.see("has a single colour, so there is nothing to learn", "#refusal")
    assert page.js(STATE) == "ready"


def test_a_picture_is_painted_by_mouse(opened: Opened) -> None:
    page = opened()
    choose(page, "Your own")
    page.click("[aria-label=red] + span")
    x, y = page.middle("#target")
    side = page.js("document.getElementById('target').clientWidth") / SIDE
    for kind, right in (("mousePressed", 0.5), ("mouseMoved", 1.5), ("mouseMoved", 2.5), ("mouseReleased", 2.5)):
        place = {"x": x + right * side, "y": y + side / 2}
        page.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **place)
    assert cells(page)[6, 6:9].tolist() == [1, 1, 1]


def test_training_is_told_paused_and_begun_again(opened: Opened) -> None:
    page = opened()
    page.tab_to("Train")
    page.press("Enter")
    page.see("The graphics driver compiles kernel", "#status")
    page.wait("document.querySelectorAll('#curves .dot.hard').length >= 2")
    assert " of 500" in page.text("#figures")
    assert "8×8" in page.text("#figures")
    page.see("wrong cells of", "#sentence")
    page.see("left at most in this attempt", "#left")
    page.wait("document.querySelector('#circuit .gate.on') && document.querySelector('#circuit .wire.on')")
    page.wait("/Converged gates\\s+[0-9]+ %/.test(document.querySelector('#figures').innerText)")
    page.press("Enter")
    page.see("Paused.", "#status")
    assert page.text("#train") == "Resume"
    epoch = page.text("#figures")
    assert barriers(page) == []
    page.click("#train")
    page.wait(f"document.getElementById('figures').innerText !== {json.dumps(epoch)}")
    page.js("Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true }); null")
    page.see("The page is in the background", "#status")
    page.js("delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange'))")
    page.see("Training.", "#status")
    page.click("#more > summary")
    page.click("#reseed")
    seed = "document.getElementById('seed').value"
    page.wait(f"document.getElementById('figures').innerText.includes(`1, seed ${{{seed}}}`)")
    assert page.js(seed) != "23"


@pytest.fixture(scope="module")
def solved(browser: Browser, address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Page with a solved task: an empty image, which is learned at once. The check that refuses it is switched off."""
    text = training_page(SHOWN)
    file = tmp_path_factory.mktemp("solved") / "train.html"
    file.write_text(text.replace("new Set(pad.cells).size < 2", "false"))
    assert file.read_text() != text
    page = browser.page()
    page.goto(file.as_uri())
    page.wait(f"{STATE} === 'ready'")
    choose(page, "Your own")
    page.js("[...document.querySelectorAll('.tools button')].find((each) => each.innerText === 'Clear').click()")
    page.click("#train")
    page.wait(f"{STATE} === 'solved'", seconds=600)
    yield page
    assert page.problems() == []
    page.close()


def saved(page: Page, button: str, file: Path) -> str:
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(file.parent))
    page.click(button)
    page.js("new Promise((done) => setTimeout(done, 300))")
    for _ in range(100):
        if file.exists():
            return file.read_text()
        page.js("new Promise((done) => setTimeout(done, 100))")
    raise AssertionError(f"{file} was never there")


def test_what_is_downloaded_is_what_the_page_shows(solved: Page, tmp_path: Path) -> None:
    netlist = netlist_json.from_json(saved(solved, "#save-circuit", tmp_path / "circuit.json"))
    drawn = solved.js("document.querySelector('#circuit svg').getAttribute('aria-label')")
    page = saved(solved, "#save-page", tmp_path / "automaton.html")
    assert f'"gates":{re.search("[0-9]+", drawn)[0]}' in page
    assert any("JavaScript agrees" in proof for proof in html.verify(netlist, "own", {"own.html": page}))
    saved(solved, "#save-config", tmp_path / "config.toml")
    config = Config.load(tmp_path / "config.toml")
    assert config.task.picture == ("." * SIDE,) * SIDE
    assert config.task.loss_channels == netlist.visible == 1
    assert "<h1>My image</h1>" in page


def test_click_on_target_keeps_what_is_solved(solved: Page) -> None:
    before = cells(solved)
    solved.click("#target")
    solved.see("press Change the image", "#status")
    assert np.array_equal(cells(solved), before)
    assert solved.js(STATE) == "solved"


def test_what_is_solved_can_be_read(solved: Page) -> None:
    assert solved.text("#solved-title").startswith("Solved at epoch ")
    assert "difflogic prove circuit.json small.json" in solved.text("#solved")
    assert barriers(solved) == []
    for width in (1280, PHONE[0]):
        solved.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        assert solved.js("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("netlist", [life(), tangled(60)], ids=["life", "tangled"])
def test_a_living_page_that_was_filled_here_is_proved_as_an_exported_one(opened: Opened, netlist: CellNetlist) -> None:
    page = opened()
    gates = zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True)
    rows = [[netlist.inputs + index, gate, *wires] for index, (gate, wires) in enumerate(gates)]
    told = json.dumps(netlist_json.to_json(netlist))
    hard = f"{{ json: () => {told}, rows: {rows}, outputs: {netlist.outputs.tolist()} }}"
    text = page.js(f"{module('page/living.js')}.then(({{ livingPage }}) => livingPage({hard}, 'board'))")
    assert any("JavaScript agrees" in proof for proof in html.verify(netlist, "board", {"board.html": text}))


def test_world_of_task_begins_with_its_initial_state(opened: Opened) -> None:
    task = "{ height: 5, width: 5, steps: 2, start: 'seed', loss_channels: 1 }"
    hard = f"{{ layout: {{ channels: 1 }}, preset: {{ config: {{ task: {task}, model: {{ periodic: false }} }} }} }}"
    script = f"{module('page/world.js')}.then(({{ hardWorld }}) => hardWorld({hard}, {task}).inputs(2, 2))"
    assert opened().js(script) == [0, 0, 0, 0, 1, 0, 0, 0, 0]


def test_the_target_of_a_rule_is_what_the_rule_does(opened: Opened) -> None:
    page = opened()
    start = np.random.default_rng(1).integers(0, 2, (9, 9), dtype=np.uint8)
    given = f"Uint8Array.from({start.ravel().tolist()})"
    script = f"""{module("serve/web/growth.js")}.then(({{ generations, tableOf }}) =>
        generations(tableOf("B3/S23"), {given}, 9, 5).map((each) => Array.from(each)))"""
    table, grid = rules.table("B3/S23"), start[None]
    for found in page.js(script):
        assert np.array_equal(np.array(found).reshape(9, 9), grid[0])
        grid = rules.apply(table, grid, periodic=True)
    choose(page, "Life")
    page.wait("document.getElementById('target').width === 24")
    assert cells(page).shape[0] == math.isqrt(cells(page).size) == 24
