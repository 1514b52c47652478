"""Headless Chromium, driven as by a person: real keys, real clicks, a real file dragged in.

The DevTools protocol over a pipe, https://chromedevtools.github.io/devtools-protocol/: no package is needed for it.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from difflogic.circuits.export.html import FLAGS

SECONDS = 180.0
"""Whatever has not happened by then does not."""
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "Space": (32, " ")}
KEYS |= {f"Arrow{way}": (code, "") for code, way in enumerate(("Left", "Up", "Right", "Down"), 37)}


class Browser:
    """One Chromium; a page that is opened while no other is finds nothing that an earlier one has left.

    Pages are tabs of one profile. One of its own for each took the processor twice as long.
    """

    def __init__(self, outgoing: int, incoming: int) -> None:
        self._outgoing = outgoing
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._calls = 0
        self.shown: set[str] = set()
        """The tabs that are open."""
        self.heard: list[dict[str, Any]] = []
        """Every event so far."""
        threading.Thread(target=self._listen, args=(incoming,), daemon=True).start()

    def _listen(self, incoming: int) -> None:
        rest = b""
        while piece := os.read(incoming, 1 << 16):
            *whole, rest = (rest + piece).split(b"\0")
            for message in whole:
                self._messages.put(json.loads(message))

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The result of a command. AssertionError where Chromium refuses it."""
        self._calls += 1
        message: dict[str, Any] = {"id": self._calls, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._outgoing, data) :]
        while True:
            answer = self._messages.get(timeout=SECONDS)
            if answer.get("id") == self._calls:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.heard.append(answer)

    def page(self, width: int = 1280, height: int = 900, dark: bool = False, still: bool = False) -> Page:
        """A new page of this size; `still`: its user wants less motion."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        if not self.shown:
            page.call("Network.clearBrowserCookies")
            page.call("Network.clearBrowserCache")
            page.call("Storage.clearDataForOrigin", origin="*", storageTypes="all")
        self.shown.add(target)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        page.call("Emulation.setDeviceMetricsOverride", **sizes)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if still else ""}
        page.call("Emulation.setEmulatedMedia", features=[scheme, motion])
        return page


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)
        self._browser.shown.discard(self._target)

    def goto(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def js(self, expression: str) -> Any:
        """The value of an expression on the page, awaited. AssertionError where it throws."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, (expression, found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = SECONDS) -> None:
        """Until it is true, also of a page that is just loaded again. AssertionError with what it shows if never."""
        until = time.monotonic() + seconds
        while not self._is_so(expression):
            assert time.monotonic() < until, f"never so: {expression}\n{self.text()}\n{self.problems()}"
            time.sleep(0.05)

    def _is_so(self, expression: str) -> bool:
        try:
            return bool(self.js(f"Boolean({expression})"))
        except AssertionError as error:
            if "Inspected target navigated" not in str(error):
                raise
            return False

    def text(self, selector: str = "body") -> str:
        return str(self.js(f"document.querySelector({json.dumps(selector)})?.innerText"))

    def see(self, text: str, selector: str = "body", seconds: float = SECONDS) -> None:
        self.wait(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(text)})", seconds)

    def click(self, selector: str) -> None:
        """With the mouse, in the middle of what is there and not covered."""
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def middle(self, selector: str) -> tuple[float, float]:
        found = json.dumps(selector)
        self.wait(f"document.querySelector({found})?.checkVisibility() && !document.querySelector({found}).disabled")
        x, y = self.js(f"""(() => {{ const e = document.querySelector({found}); e.scrollIntoView({{ block: 'center' }});
            const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()""")
        return x, y

    def press(self, *keys: str) -> None:
        """One key after the other; `Shift+Tab` holds one down."""
        for each in keys:
            key = each.removeprefix("Shift+")
            code, text = KEYS.get(key, (ord(key.upper()[0]), key))
            name = " " if key == "Space" else key
            held = 8 if key != each else 0  # Shift
            common = {"key": name, "code": key, "windowsVirtualKeyCode": code, "modifiers": held}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def fill(self, selector: str, text: str) -> None:
        self.click(selector)
        self.js(f"document.querySelector({json.dumps(selector)}).select()")
        self.type(text)

    def drop(self, file: Path, selector: str) -> None:
        """Drag a file from elsewhere and let it go there."""
        x, y = self.middle(selector)
        data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def focused(self) -> str:
        """Name of what has the focus, as a screen reader would say it."""
        name = self.js("""(() => { const e = document.activeElement; return e.getAttribute('aria-label')
            || e.closest('label')?.innerText || e.labels?.[0]?.innerText || e.innerText || e.tagName; })()""")
        return str(name).strip()

    def tab_to(self, name: str, most: int = 80) -> None:
        """Move the focus by the Tab key alone. AssertionError if it does not get there."""
        met = []
        for _ in range(most):
            self.press("Tab")
            met.append(self.focused())
            if met[-1].startswith(name):
                return
        raise AssertionError(f"Tab never reached {name!r}, but {met}")

    def problems(self) -> list[str]:
        """Errors and warnings so far, exceptions and breaches of the content policy among them."""
        found = []
        for event in self._browser.heard:
            if event.get("sessionId") != self._session:
                continue
            method, told = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(told["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
                found.append(json.dumps(told["args"]))
            elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        return found


def barriers(page: Page, *rules: str) -> list[str]:
    """Return the problems that axe-core finds in what is shown: texts too pale, fields without names, invalid roles.

    If rules are named, only these are checked.
    """
    script = resources.files("axe_core_python") / "axe.min.js"
    page.js(script.read_text(encoding="utf-8") + "; null")
    page.js("axe.configure({ allowedOrigins: ['<unsafe_all_origins>'] })")  # a page that is a file has none
    options = json.dumps({"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {}))
    found = page.js(f"axe.run(document, {options}).then(({{ violations }}) => violations)")
    return [f"{each['id']}: {node['html']} {node['failureSummary']}" for each in found for node in each["nodes"]]


@contextmanager
def chromium(webgpu: bool = False) -> Iterator[Browser]:
    """Without a window, with a profile that is thrown away; `webgpu`: by SwiftShader, which is a program."""
    to_it, outgoing = os.pipe()
    incoming, from_it = os.pipe()
    with TemporaryDirectory(prefix="difflogic-", ignore_cleanup_errors=True) as profile:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []  # its sandbox refuses root
        flags = [each for each in FLAGS if webgpu or "webgpu" not in each]
        command = ["chromium", *flags, *root, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        line = f"exec {shlex.join(command)} 3<&{to_it} 4>&{from_it}"
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(["bash", "-c", line], pass_fds=(to_it, from_it), **silent)
        os.close(to_it)
        os.close(from_it)
        try:
            yield Browser(outgoing, incoming)
        finally:
            process.terminate()
            process.wait()
            os.close(outgoing)
            os.close(incoming)
