"""A real Chromium without a window, spoken to through a pipe: opens a page, notes what it loads and complains about."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# axe-core, an accessibility engine: `npm pack axe-core`, unpacked; CLICKMIX_AXE names its axe.min.js.
AXE = next((path for name in [os.environ.get("CLICKMIX_AXE", "")] if name and (path := Path(name)).is_file()), None)
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-pipe",
)
PATIENCE = 60  # seconds for an answer


@dataclass
class Browser:
    """A running Chromium with one tab; `heard` are the events of the page that was opened last."""

    to: int
    back: int
    session: str = ""
    number: int = 0
    rest: bytes = b""
    heard: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol and wait for its answer; events on the way are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self.number:
            self.heard.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, path: Path, *, width: int, dark: bool = False, script: bool = True) -> None:
        """Show a file at this width, until it is loaded; on request with the page's own script switched off."""
        self._load("about:blank")  # else an address that differs in its #part only would not load again
        self.ask("Emulation.setScriptExecutionDisabled", value=not script)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self._load(path.resolve().as_uri())

    def _load(self, address: str) -> None:
        self.heard.clear()
        self.ask("Page.navigate", url=address)
        while not self.events("Page.loadEventFired"):
            self.heard.append(self._next())

    def events(self, *methods: str) -> list[dict[str, Any]]:
        """What was heard of some kinds since the page was opened."""
        return [event["params"] for event in self.heard if event.get("method") in methods]

    def requests(self) -> list[str]:
        """Every address the page asked for, itself included; its own data: addresses are not asked of anyone."""
        addresses = [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]
        return [address for address in addresses if not address.startswith("data:")]

    def complaints(self) -> list[dict[str, Any]]:
        """Console messages, uncaught errors, violations of the page's own policy, dialogs."""
        kinds = (
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        )
        return self.events(*kinds)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, asked from outside the page's policy."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)["result"].get(
            "value"
        )

    def picture(self, path: Path, *, height: int | None = None) -> None:
        """The page as a PNG, whole or down to a height."""
        width = self.evaluate("document.documentElement.clientWidth")
        clip = {} if height is None else {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True, **clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def paper(self, path: Path) -> None:
        """The page printed, as a PDF."""
        path.write_bytes(base64.b64decode(self.ask("Page.printToPDF")["data"]))

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"Chromium said nothing for {PATIENCE} seconds"
            self.rest += os.read(self.back, 1 << 20)
        message, _, self.rest = self.rest.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed


@contextlib.contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """A Chromium with a fresh profile, gone afterwards."""
    assert PROGRAM is not None
    read_to, to = os.pipe()
    back, write_back = os.pipe()
    # Chromium listens on file descriptor 3 and answers on 4.
    shell = f'exec "$0" "$@" 3<&{read_to} 4>&{write_back}'
    command = ["bash", "-c", shell, PROGRAM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, pass_fds=(read_to, write_back), stderr=subprocess.DEVNULL)
    os.close(read_to)
    os.close(write_back)
    try:
        browser = Browser(to, back)
        page = next(t for t in browser.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = browser.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        browser.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.ask(f"{domain}.enable")
        yield browser
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        os.close(to)
        os.close(back)
