"""Count the clicks and words in other programs' pages until they show a training result, as in `first_circuit`.

    python -m venv OTHERS && OTHERS/bin/pip install mlflow optuna-dashboard tensorboard
    python -m benchmarks.service.other_pages OTHERS/bin [--save]

These pages cannot start a training. So a script creates the run, and its lines of code are counted. Then Chromium
operates the page like a visitor who knows each step, from the program's first page on.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.service.first_circuit import Visit
from benchmarks.store import CHECKOUT, append, inserted
from difflogic.bench.machine import stamp
from tests.serve.chromium import Page, chromium

BEGIN = "<!-- written by python -m benchmarks.service.other_pages -->"
SECONDS = 120.0
MLFLOW = """
import mlflow
mlflow.set_tracking_uri("http://127.0.0.1:PORT")
mlflow.set_experiment("pictures")
with mlflow.start_run(run_name="smile"):
    for step in range(10):
        mlflow.log_metric("loss", 10 - step, step=step)
    mlflow.log_text('{"gates": []}', "circuit.json")
"""
OPTUNA = """
import optuna
study = optuna.create_study(storage="sqlite:///trials.db", study_name="pictures")
study.optimize(lambda trial: trial.suggest_float("lr", 0, 1) ** 2, n_trials=10)
"""
TENSORBOARD = """
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("events/smile")
for step in range(10):
    writer.add_event(Event(step=step, summary=Summary(value=[Summary.Value(tag="loss", simple_value=10 - step)])))
writer.close()
"""
TEXT = """(() => {
    const roots = [document.body], found = [];
    for (const root of roots) {
        found.push(root.innerText ?? [...root.children].map((each) => each.innerText ?? "").join("\\n"));
        for (const each of root.querySelectorAll("*")) if (each.shadowRoot) roots.push(each.shadowRoot);
    }
    return found.join("\\n");
})()"""
"""Script that returns all visible text, including that of shadow roots."""
MARKED = """(() => {
    const of = [...document.body.querySelectorAll("*")];
    const says = (each) => each?.innerText?.trim() === TEXT;
    let found = of.find((each) => each.checkVisibility() && says(each));
    if (!found) return false;
    while (says(found.firstElementChild)) found = found.firstElementChild; // what is around it may be wider
    for (const each of document.querySelectorAll("[data-next]")) each.removeAttribute("data-next");
    found.setAttribute("data-next", "");
    return true;
})()"""
"""Script that marks the clickable element with this text, so that a selector finds it."""


class Shown:
    """Page that returns all visible text, including that of shadow roots."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.js, self.click, self.screenshot = page.js, page.click, page.screenshot

    def text(self, _: str = "") -> str:
        return str(self._page.js(TEXT))

    def see(self, text: str) -> None:
        until = time.monotonic() + SECONDS
        while text not in self.text():
            assert time.monotonic() < until, f"{text!r} never came: {self.text()}"
            time.sleep(0.05)


def press(page: Page, visit: Visit, text: str) -> None:
    page.wait(MARKED.replace("TEXT", json.dumps(text)), SECONDS)
    visit.click("[data-next]")


def artifact(page: Page, shown: Shown, visit: Visit) -> None:
    shown.see("pictures")
    visit.look("begin")
    for text, then in WAY:
        press(page, visit, text)
        shown.see(then)
        visit.look(text)


WAY = (
    ("Model training", "Recent Experiments"),  # the start page is for prompts
    ("pictures", "smile"),
    ("smile", "Artifacts"),
    ("Artifacts", "circuit.json"),
    ("circuit.json", '"gates"'),
)


def trials(page: Page, shown: Shown, visit: Visit) -> None:
    shown.see("pictures")
    visit.look("begin")
    page.wait("(document.querySelector('a[href*=\"/studies/\"]'))")
    visit.click("a[href*='/studies/']")
    shown.see("Best Trial")
    visit.look("study")


def curve(_: Page, shown: Shown, visit: Visit) -> None:
    shown.see("Smoothed")
    visit.look("begin")


@dataclass(frozen=True)
class Other:
    """Other program with a page that shows trainings."""

    package: str
    task: str
    command: str
    """Command that serves the page; PORT stands for a free port."""
    script: str
    """Python code that creates the run."""
    walk: Callable[[Page, Shown, Visit], None]
    serves_first: bool = False


OTHERS = {
    "MLflow": Other(
        "mlflow", "a run's file `circuit.json` found and shown",
        "mlflow server --port PORT --workers 1 --backend-store-uri sqlite:///runs.db", MLFLOW, artifact, True,
    ),
    "Optuna dashboard": Other(
        "optuna-dashboard", "a study's best trial seen",
        "optuna-dashboard sqlite:///trials.db --port PORT", OPTUNA, trials,
    ),
    "TensorBoard": Other(
        "tensorboard", "a run's curve seen", "tensorboard --logdir events --port PORT", TENSORBOARD, curve
    ),
}  # fmt: skip


def measure(name: str, programs: Path, browser_page: Callable[[], Page]) -> dict[str, object]:
    """Start a program, create a run, open its result in the page, and return the line."""
    other = OTHERS[name]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "MLFLOW_TRACKING_URI": "", "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryDirectory() as folder:

        def script() -> None:
            made = other.script.replace("PORT", port)
            subprocess.run([programs / "python", "-c", made], cwd=folder, env=environment, check=True, timeout=SECONDS)

        if not other.serves_first:
            script()
        program, *options = other.command.replace("PORT", port).split()
        served = subprocess.Popen([programs / program, *options], cwd=folder, env=environment, start_new_session=True)
        try:
            page = browser_page()
            answered(page, f"http://127.0.0.1:{port}/")
            if other.serves_first:
                script()
                page.goto(f"http://127.0.0.1:{port}/")
            shown = Shown(page)
            visit = Visit(shown, None)  # type: ignore[arg-type]
            other.walk(page, shown, visit)
            page.close()
        finally:
            os.killpg(served.pid, signal.SIGTERM)
            served.wait()
    listed = subprocess.run([programs / "pip", "list", "--format=json"], capture_output=True, text=True, check=True)
    version = next(each["version"] for each in json.loads(listed.stdout) if each["name"] == other.package)
    told = {key: value for key, value in visit.told().items() if key != "views"}
    return {"page": name, "version": version, "task": other.task, "lines": len(other.script.split("\n")) - 2, **told}


def answered(page: Page, address: str) -> None:
    """Open the address until a server responds. Raises AssertionError after SECONDS."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        page.goto(address)
        if page.js("location.protocol") == "http:":
            return
        time.sleep(0.5)
    raise AssertionError(f"nobody answers at {address}")


def table(lines: list[dict[str, object]]) -> str:
    """Return the lines as a Markdown table."""
    rows = [
        "| page | nearest task | lines of code | clicks | seconds | words that appear |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for line in lines:
        version = ".".join(re.findall(r"\d+", str(line["version"]))[:2])
        cells = (line[key] for key in ("task", "lines", "clicks", "seconds", "words"))
        rows.append(f"| {line['page']} {version} | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, help="the folder of their commands")
    parser.add_argument("--save", action="store_true", help="append to results/pages.jsonl, and write the table")
    asked = parser.parse_args()
    with chromium() as browser:
        lines = [measure(name, asked.programs.absolute(), browser.page) | stamp() for name in OTHERS]
    print(table(lines))
    if asked.save:
        append("pages", lines)
        page = CHECKOUT / "docs" / "results" / "first-circuit.md"
        page.write_text(inserted(page.read_text(encoding="utf-8"), BEGIN, table(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
