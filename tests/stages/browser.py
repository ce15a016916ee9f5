"""A headless Chromium, driven over its debugging pipe: no driver, no network, no dependency.

The protocol (https://chromedevtools.github.io/devtools-protocol/) is JSON messages that end in a
zero byte, on the descriptors 3 (to the browser) and 4 (from it).
"""

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
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page: what it asked the network for, what it said on the console, and its document."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self._process, self._write, self._read = process, write, read
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._send(f"{domain}.enable")

    def open(self, path: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Load a file at a width in CSS pixels and wait until it is complete."""
        self.requests.clear()
        self.complaints.clear()
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._send("Emulation.setEmulatedMedia", features=features)
        self._send("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + 60
        while self.run("location.href + document.readyState") != f"{path.as_uri()}complete":
            assert time.monotonic() < deadline, "the page does not load"
            time.sleep(0.1)

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self._send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key where the focus is."""
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self._send(
                "Input.dispatchKeyEvent",
                type=kind, key=key, code=key, windowsVirtualKeyCode=code, **extra,
            )  # fmt: skip

    def screenshot(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self._send("Page.captureScreenshot")["data"]))

    def pdf(self) -> bytes:
        """Return the printed page."""
        return base64.b64decode(self._send("Page.printToPDF")["data"])

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded":
            self.complaints.append(str(params["entry"]))
        elif event.get("method") == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], 60)
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 20)
            assert piece, f"the browser has ended: {self._process.poll()}"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Start Chromium with a fresh profile; yields its page."""
    assert CHROMIUM is not None
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()

    def descriptors() -> None:
        # first out of the way of 3 and 4, which may be taken by these very pipes
        first, second = os.dup(to_read), os.dup(from_write)
        os.dup2(first, 3)
        os.dup2(second, 4)

    command = [
        CHROMIUM, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        close_fds=False, preexec_fn=descriptors,  # noqa: PLW1509 - Chromium reads its pipe at 3 and 4
    )  # fmt: skip
    os.close(to_read)
    os.close(from_write)
    try:
        yield Page(process, to_write, from_read)
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(to_write)
        os.close(from_read)
