"""Export of a self-contained HTML page that runs the automaton in WebGPU, or in JavaScript if WebGPU is missing.

Verification operates the page in headless Chromium, in WebGPU and in JavaScript, at the sizes of a phone and a desktop.
A script that is added to the page posts the results to a local server.
"""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from difflogic.circuits.export.proving import check_grid, random_grid
from difflogic.circuits.export.testbench import random_bits
from difflogic.circuits.export.text import Files, fill, script, statements, template, text_of
from difflogic.circuits.export.wgsl import grid_of, shader, words_of
from difflogic.circuits.synthesis import tools
from difflogic.circuits.synthesis.function import live_gates
from difflogic.core.bits import Bits
from difflogic.core.prng import key_from_seed
from difflogic.errors import ExportError, ToolError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines

SCRIPTS = ("drawing.js", "play.js", "figure.js", "controls.js", "page.js")
"""Template files of the page's scripts, in order, which follow `engines.js`."""
_MOST_STATEMENTS = 5_000
"""Maximum number of gates in a shader, so that a browser compiles it in seconds; larger circuits use JavaScript."""


def export(netlist: CellNetlist, name: str) -> Files:
    """Return an HTML page that runs the automaton, as the contents of `NAME.html`."""
    code = lines(netlist)
    data = {
        "channels": netlist.channels,
        "visible": netlist.visible,
        "periodic": netlist.periodic,
        "neighbourhood": netlist.neighbourhood,
        "origin": list(netlist.origin),
        "colours": netlist.palette.tolist(),
        "home": None if netlist.scenario is None else _home(netlist.scenario, netlist.origin),
        "shader": shader(netlist, name) if len(code) <= _MOST_STATEMENTS else None,
        "lines": rows(netlist),
        "outputs": netlist.outputs.tolist(),
        "gates": live_gates(netlist),
    }
    cell = statements(netlist, "const {name} = {value};", "result[{name}] = {value};", "0", "-1")
    page = fill(
        "page.html",
        netlist,
        name,
        style=template("page.css") + template("figure.css"),
        data=json.dumps(data),
        cell=cell,
        engines=template("engines.js"),
        script=script(*SCRIPTS),
    )
    return {f"{name}.html": page}


def _home(scenario: Scenario, origin: Sequence[int]) -> dict[str, Any]:
    """Return a scenario as data for the page; `ones` lists the ones of an initial image as `[row, column, channel]`."""
    # Only the ones of an initial image are stored, since most of it is 0; the page generates other initial states.
    own = scenario.grid(origin) if scenario.start == "picture" else None
    ones: list[list[int]] = [] if own is None else np.argwhere(own).tolist()
    return {name: value for name, value in asdict(scenario).items() if name != "picture"} | {"ones": ones}


def rows(netlist: Netlist) -> list[list[int]]:
    """Return `[bit, id, a, b]` per live gate: output bit, gate id and input bits; an ignored input is any bit."""
    return [[line.bit, line.gate, *(*line.reads, *line.reads, 0, 0)[:2]] for line in lines(netlist)]


WINDOWS = {"desktop": (1280, 900), "phone": (390, 844)}
"""Width and height in pixels of the frame around the page; Chromium's own window is at least 500 pixels wide."""
FLAGS = (
    "--headless=new",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--window-size=1300,1000",
)
_GRIDS = ((16, 16), (7, 33), (5, 70))
_STEPS = 50
_SECONDS = 240.0

_FRAME = """<!doctype html>
<link rel="icon" href="data:,">
<body style="margin: 0"><iframe src="page" style="border: 0; width: {}px; height: {}px"></iframe></body>
"""

_FIRST = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => errors.push("blocked: " + event.blockedURI));
for (const name of ["error", "warn"]) console[name] = (...words) => errors.push(words.join(" "));
</script>
"""

Report = dict[str, Any]


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported page and return one sentence per successful check. Raises ExportError or ToolError."""
    page = text_of(files, f"{name}.html")
    runs, ends = zip(*_runs(netlist), strict=True)
    own = None if netlist.scenario is None else netlist.scenario.grid(netlist.origin)
    home = None if own is None else words_of(own).tolist()
    proofs = []
    for window, size in WINDOWS.items():
        report = drive(page, {"runs": runs, "home": home}, "proof.js", size)
        check_report(report, window)
        engines = sorted({run["engine"] for run in report["runs"]}, reverse=True)
        for expected, result in zip([end for end in ends for _ in engines], report["runs"], strict=True):
            after = grid_of(np.array(result["after"], dtype=np.uint32), *expected.shape)
            check_grid(expected, after, f"The page in {'WebGPU' if result['engine'] == 'gpu' else 'JavaScript'}")
        in_gpu = f"WebGPU was unavailable ({report['webgpu']})" if report["webgpu"] else "WebGPU agrees too"
        proofs.append(f"at {window} size, JavaScript agrees on {len(runs)} grids after {_STEPS} steps; {in_gpu}")
    return [*proofs, "controls, brushes, keys and live wires work without errors or network requests"]


def _runs(netlist: CellNetlist) -> Iterator[tuple[dict[str, Any], Bits]]:
    """Yield test runs for the page: initial state and fire masks as JSON data, and the expected final state."""
    for height, width in _GRIDS:
        start, some = random_grid(netlist, height, width), random_bits(key_from_seed(7), (_STEPS, height, width))
        run = {"height": height, "width": width, "steps": _STEPS, "start": words_of(start).tolist()}
        for fires in (np.ones_like(some), some):
            words: list[int] = np.concatenate([words_of(fire[..., None]) for fire in fires]).tolist()
            yield run | {"fires": words}, netlist.after(start, _STEPS, fires[..., None])


def check_report(report: Report, window: str) -> None:
    """Raise ExportError if the page reported errors or sent requests, and ToolError if its width is wrong."""
    if report["width"] != WINDOWS[window][0]:
        raise ToolError(f"The width of the page in chromium must be {WINDOWS[window][0]} px, got {report['width']} px.")
    problems = [*report["errors"], *(f"failed: {failure}" for failure in report["failures"]), *report["requests"]]
    if problems:
        raise ExportError(f"The page at {window} size has {len(problems)} problems, first: {problems[0]}")


def drive(page: str, proof: dict[str, Any], script: str, window: tuple[int, int]) -> Report:
    """Run the template `script` with the data `proof` on a page in Chromium; return its report. Raises ToolError."""
    # Two scripts are added to the exported page: one collects errors, the other operates the page and posts a report.
    drives = f"<script>const proof = {json.dumps(proof)};\n{template('proving.js')}{template(script)}</script>"
    driven = page.replace("<style>", f"{_FIRST}<style>", 1).replace("</body>", f"{drives}\n</body>")
    with serving(driven, window) as server:
        with browser(f"http://127.0.0.1:{server.server_port}/"):
            try:
                report: Report = server.reports.get(timeout=_SECONDS)
            except queue.Empty as error:
                raise ToolError(f"chromium did not report within {_SECONDS:.0f} s.") from error
        report["requests"] = [f"it requested {path}" for path in server.requests if path not in server.pages]
    return report


class _Server(ThreadingHTTPServer):
    """HTTP server that shows a page in a frame of size `window`, and records requests and reports."""

    daemon_threads = True

    def __init__(self, page: str, window: tuple[int, int]) -> None:
        self.pages = {"/": _FRAME.format(*window).encode(), "/page": page.encode()}
        self.reports: queue.Queue[Report] = queue.Queue()
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        page = self.server.pages.get(self.path)
        self._answer(404 if page is None else 200, page or b"")

    def do_POST(self) -> None:
        report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(200, b"")
        self.server.reports.put(report)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Do nothing: suppress the log, since `requests` records every request."""


@contextmanager
def serving(page: str, window: tuple[int, int]) -> Iterator[_Server]:
    """Serve a page on a local port for the duration of a `with` block."""
    with _Server(page, window) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def browser(address: str, flags: Sequence[str] = FLAGS) -> Iterator[None]:
    """Open `address` in headless Chromium for the duration of a `with` block. Raises ToolError if it is missing."""
    if advice := tools.missing("chromium"):
        raise ToolError(advice)
    with TemporaryDirectory(prefix="difflogic-", ignore_cleanup_errors=True) as profile:
        # Chromium refuses to run as root with its sandbox.
        root = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        command = ["chromium", *flags, *root, f"--user-data-dir={profile}", address]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait()
