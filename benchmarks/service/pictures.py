"""Take screenshots of each view of the page: at two widths, light and dark, for all states of jobs and of the server.

    `python -m benchmarks.service.pictures FOLDER`

The screenshots are for visual inspection. Problems that axe-core finds in a view are printed. The exit code is 1 if
there are any, or if a view is wider than its window.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.service.first_circuit import screenshot, signed_in
from benchmarks.service.jobs import config, ended, spec_of
from difflogic.config import presets, recipes
from difflogic.serve.store.presence import Presence
from difflogic.serve.store.store import Store
from difflogic.serve.worker.supervisor import Supervisor
from tests.serve.chromium import Browser, barriers, chromium
from tests.serve.live import Live, serving

WIDTHS = {1280: 900, 390: 844}
MANY = 500
OPEN = "document.querySelectorAll('details').forEach((each) => (each.open = !each.matches('.menu')))"
KINDS = ("rule", "film", "task")


class Camera:
    """Pages with all combinations of width and colour scheme, and the problems in their views."""

    def __init__(self, browser: Browser, live: Live, folder: Path) -> None:
        self._folder = folder
        self.found: list[str] = []
        self._pages = {
            f"{width}-{'dark' if dark else 'light'}": signed_in(browser, live, width, height, dark, still=True)
            for (width, height), dark in itertools.product(WIDTHS.items(), (False, True))
        }

    def shoot(self, name: str, place: str | None, text: str, selector: str = "main", script: str = "") -> None:
        """Take screenshots at the fragment `place`, or of the present view if None, once `selector` has `text`."""
        for look, page in self._pages.items():
            if place is not None:
                page.js(f"location.hash = {place!r}")
                page.see(text, selector)
            if script:
                page.js(script)
            page.see(text, selector)
            page.js("new Promise((done) => setTimeout(done, 700))")  # images and curves come a little later
            screenshot(page, self._folder / f"{name}-{look}.png")
            self.found += [f"{name}-{look}: {each}" for each in barriers(page)]
            if page.js("document.documentElement.scrollWidth > innerWidth"):
                self.found.append(f"{name}-{look}: wider than its window")


def failed(store: Store) -> str:
    """Add a failed job to the store, and return its id."""
    job = store.submit("ann", spec_of(config(), name="too large", engine="gpu:9"))[0].id
    with closing(Presence(store.folder, "by-hand")):
        lease = store.claim("by-hand", "gpu:9", {"gpu:9"}, 1000)
        assert lease is not None
        store.finish(job, lease[1], "failed", "The device has no memory left: 120 MB were asked for.")
    return job


def views(camera: Camera, store: Store) -> Iterator[None]:
    """Take screenshots of all views; the views before the first `yield` must have no worker."""
    camera.shoot("empty", "#/", "No jobs yet")
    camera.shoot("nothing", "#/nowhere", "no such page")
    camera.shoot("no-devices", "#/devices", "No workers")
    camera.shoot("new", "#/new", "MB", ".preview")
    for kind in KINDS:
        choose = f"document.querySelector('[name=kind][value={kind}]')?.click()"
        camera.shoot(f"new-{kind}", None, "", ".preview", choose)
    camera.shoot("new-all", "#/new", "MB", ".preview", OPEN)
    yield
    board = recipes.applied("robust", presets.checkerboard(small=True))
    solved = store.submit("ann", spec_of(board, until_solved=True, within="10m", tags=["board"]))[0].id
    ended(store, solved)
    short = store.submit("ann", spec_of(config(), name="short"))[0].id
    ended(store, short)
    broken = failed(store)
    running = store.submit("ann", spec_of(config(seed=5, epochs=900_000), name="a long training"))[0].id
    camera.shoot("running", f"#/jobs/{running}", "At epoch", ".automaton")
    camera.shoot("solved", f"#/jobs/{solved}", "Solved", ".job-head")
    camera.shoot("unsolved-all", f"#/jobs/{short}", "epochs", ".job-head", OPEN)
    camera.shoot("failed", f"#/jobs/{broken}", "no memory left", ".job-head")
    camera.shoot("list", "#/", "too large", ".jobs")
    camera.shoot("compare", f"#/compare/{solved},{short}", "short", ".compared")
    camera.shoot("devices", "#/devices", "cpu")
    menu = "document.querySelector('.menu').open = true"
    camera.shoot("menu", f"#/jobs/{solved}", "Solved", ".job-head", menu)
    dialog = "document.querySelector('[data-action=delete]').click()"
    camera.shoot("dialog", None, "cannot be undone", "dialog", dialog)
    for number in range(MANY):
        store.submit("ann", spec_of(config(), name=f"job {number}", engine="gpu:9"))
    camera.shoot("many", "#/", f"job {MANY - 1}", ".jobs", "document.querySelector('dialog')?.remove()")
    yield


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, chromium() as browser:
        with serving(Path(work) / "store") as live:
            camera = Camera(browser, live, folder)
            shots = views(camera, live.store)
            next(shots)
            with Supervisor(live.store.folder, ["cpu"]):
                next(shots)
        camera.shoot("no-connection", None, "The connection to the server was lost", "#offline")
        camera.shoot("no-connection-new", "#/new", "cannot be reached", ".error")
    print("\n".join(camera.found) or "nothing found")
    return int(bool(camera.found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
