"""A headless Chromium, driven over the pipe of its DevTools protocol: nothing to install but the browser."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

FOUND = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chromium:
    """One page in one browser. What it complains about on its console is kept in ``complaints``."""

    def __init__(self) -> None:
        assert FOUND
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_here, write_there = os.pipe()
        read_there, write_here = os.pipe()
        pipes = f'exec "$0" "$@" 3<&{read_there} 4>&{write_there}'
        options = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
        )
        self.process = subprocess.Popen(
            ["bash", "-c", pipes, FOUND, *options, f"--user-data-dir={self.profile.name}", "about:blank"],
            pass_fds=(read_there, write_there),
            stderr=subprocess.DEVNULL,
        )
        os.close(read_there)
        os.close(write_there)
        self.to, self.answers = os.fdopen(write_here, "wb", 0), os.fdopen(read_here, "rb", 0)
        self.rest, self.number, self.session = b"", 0, ""
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self.session = ""
        self.ask("Browser.close")
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:  # it has said goodbye, and what it still holds is of no use
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self.number += 1
        session = {"sessionId": self.session} if self.session else {}
        command = {"id": self.number, "method": method, "params": arguments, **session}
        self.to.write(json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.answers.fileno(), 1 << 20)
            assert more, "Chromium ended."
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def _note(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(told["exceptionDetails"]["exception"].get("description", "exception"))
        elif message.get("method") == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            self.complaints.append(str(told["args"]))
        elif message.get("method") == "Log.entryAdded":
            self.complaints.append(told["entry"]["text"])

    def look(self, width: int = 1200, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the window and the reader's preference."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.wait(f"innerWidth === {width}")
        self.js("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(1))))")

    def open(self, path: Path) -> None:
        """Open a file and wait until the viewer shows a step, or says why not."""
        self.ask("Page.navigate", url=path.resolve().as_uri())
        self.wait(
            "document.readyState === 'complete' && document.getElementById('stage-note') && "
            "!document.getElementById('stage-note').textContent.includes('being unpacked')"
        )

    def js(self, expression: str) -> Any:
        """Evaluate an expression in the page; a promise is awaited."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def wait(self, expression: str, seconds: float = 300) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.js(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press and release a key, as the keyboard does."""
        codes = {
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
            "Tab": 9,
            "Home": 36,
            "End": 35,
        }
        for kind in ("rawKeyDown", "keyUp"):
            code = {"windowsVirtualKeyCode": codes[key]}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, **code)

    def shoot(self, path: Path, *, whole: bool = True) -> None:
        """Save a picture of the page, or of what the window shows."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(shot))
