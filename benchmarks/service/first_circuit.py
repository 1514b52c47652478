"""Count the clicks, seconds and words from an empty server to a proved circuit of a custom image.

    python -m benchmarks.service.first_circuit [FOLDER]

The script operates the page in Chromium like a visitor who knows each step, with real clicks, a real file and a real
worker. With FOLDER, it also takes screenshots.
"""

from __future__ import annotations

import base64
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from difflogic.serve.api.auth import COOKIE
from difflogic.serve.worker.supervisor import Supervisor
from tests.serve.chromium import Browser, Page, chromium
from tests.serve.live import ANN, Live, serving

LOADS = 15
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
CONTROLS = """[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
    .filter((each) => each.checkVisibility() && !each.closest("#top")).length"""


def screenshot(page: Page, path: Path) -> None:
    """Write a PNG of the entire page, including parts outside the window."""
    size = page.call("Page.getLayoutMetrics")["cssContentSize"]
    shot = page.call("Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1})
    path.write_bytes(base64.b64decode(shot["data"]))


class Visit:
    """Visit of the page, with counts of clicks, words and seconds."""

    def __init__(self, page: Page, folder: Path | None) -> None:
        self._page, self._folder = page, folder
        self._read: set[str] = set()
        self._begun = time.monotonic()
        self.acts = self.words = 0
        self.views: dict[str, list[int]] = {}

    def look(self, name: str) -> None:
        """Count the words that are new on the page; record the number of controls and the height of the view."""
        lines = {line.strip() for line in self._page.text("main").splitlines()} - self._read
        self._read |= lines
        self.words += sum(len(line.split()) for line in lines)
        height = self._page.js("document.documentElement.scrollHeight")
        self.views[name] = [self._page.js(CONTROLS), height]
        if self._folder is not None:
            screenshot(self._page, self._folder / f"{name}.png")

    def click(self, selector: str) -> None:
        self.acts += 1
        self._page.click(selector)

    def drop(self, file: Path, selector: str) -> None:
        self.acts += 1
        self._page.drop(file, selector)

    def told(self) -> dict[str, object]:
        seconds = round(time.monotonic() - self._begun, 1)
        return {"clicks": self.acts, "seconds": seconds, "words": self.words, "views": self.views}


def loads(browser: Browser, live: Live) -> dict[str, int]:
    """Return the median milliseconds to the first paint and to the list of jobs, in a browser with an empty cache."""
    found = []
    for _ in range(LOADS):
        page = signed_in(browser, live)
        page.see("No jobs yet")
        found.append((page.js(PAINT), page.js("performance.now()")))
        page.close()
    return {
        name: round(statistics.median(times))
        for name, times in zip(("paint", "list"), zip(*found, strict=True), strict=True)
    }


def signed_in(browser: Browser, live: Live, *look: Any, **more: Any) -> Page:
    """Return a page with the list of jobs after signing in; `look` and `more` are arguments of `Browser.page`."""
    with live.client(token=None) as client:
        client.post("/session", json={"token": ANN})
        cookie = str(client.cookies[COOKIE])
    page = browser.page(*look, **more)
    page.call("Network.setCookie", name=COOKIE, value=cookie, url=live.address)
    page.goto(live.address)
    return page


def walk(page: Page, visit: Visit, picture: Path) -> None:
    """Operate the page from the empty server to the download of the proved circuit."""
    visit.look("empty")
    visit.click(".empty .button")
    page.see("MB", ".preview")
    visit.look("new")
    visit.click("[value=own]")
    visit.drop(picture, ".own .drop")
    page.see("12 cells wide", ".preview")
    visit.look("new-filled")
    visit.click(".preview .primary")
    page.wait("document.querySelector('.job-head .pill')?.innerText === 'Running'")
    page.see("At epoch", ".automaton")
    visit.look("running")
    page.wait("document.querySelector('.job-head .pill').innerText === 'Solved'")
    page.wait("document.querySelector('.living')?.checkVisibility()")
    visit.look("solved")
    visit.click("[data-action=simplify]")
    page.wait("document.querySelector('.follow-ups a[href$=\"circuit.json\"]')?.checkVisibility()")
    visit.look("proved")
    visit.click(".follow-ups a[href$='circuit.json']")


def main(folder: Path | None) -> None:
    with tempfile.TemporaryDirectory() as work, chromium() as browser:
        picture = Path(work) / "smile.png"
        drawn = Image.new("RGB", (12, 12))
        pencil = ImageDraw.Draw(drawn)
        pencil.ellipse((1, 1, 10, 10), fill="yellow")
        pencil.point([(4, 4), (7, 4), (4, 7), (5, 8), (6, 8), (7, 7)], fill="blue")
        drawn.save(picture)
        with serving(Path(work) / "store") as live, Supervisor(live.store.folder, ["cpu"]):
            times = loads(browser, live)
            page = signed_in(browser, live)
            page.see("No jobs yet")
            visit = Visit(page, folder)
            walk(page, visit, picture)
            print(json.dumps(visit.told() | {"milliseconds": times}))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
