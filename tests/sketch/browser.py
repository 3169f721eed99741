# SPDX-License-Identifier: MIT
"""Headless Chromium through its DevTools pipe, with nothing but the standard library."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe"]


def find():
    return next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


class Browser:
    """One page. Console messages and failed or attempted loads are gathered as they come."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="etch-browser-")
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()

        def wire():  # the browser wants its pipe at descriptors 3 and 4
            a, b = os.dup(to_read), os.dup(from_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen([program, *FLAGS, "--user-data-dir=" + self.profile, "about:blank"], pass_fds=(3, 4, to_read, from_write),
                                        preexec_fn=wire, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.id, self.pending, self.messages, self.requests, self.session = 0, b"", [], [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _receive(self, limit=60):
        end = time.monotonic() + limit
        while b"\0" not in self.pending:
            ready, _, _ = select.select([self.back], [], [], max(0, end - time.monotonic()))
            data = os.read(self.back, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("the browser does not answer")
            self.pending += data
        line, self.pending = self.pending.split(b"\0", 1)
        return json.loads(line)

    def _note(self, event):
        name, p = event.get("method"), event.get("params", {})
        if name == "Log.entryAdded":
            self.messages.append(p["entry"]["text"])
        elif name == "Runtime.exceptionThrown":
            self.messages.append(p["exceptionDetails"]["text"] + str(p["exceptionDetails"].get("exception", {}).get("description")))
        elif name == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])

    def call(self, method, **params):
        self.id += 1
        message = {"id": self.id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.id:
                if "error" in answer:
                    raise RuntimeError(method + ": " + str(answer["error"]))
                return answer["result"]
            self._note(answer)

    def open(self, url):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        for _ in range(200):
            if self.run("location.href !== 'about:blank' && document.readyState === 'complete'"):
                return
            time.sleep(0.05)
        raise RuntimeError(url + " did not load")

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(expression + ": " + json.dumps(result["exceptionDetails"])[:400])
        return result["result"].get("value")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, kind="", dark=False):
        self.call("Emulation.setEmulatedMedia", media=kind,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def _middle(self, selector):
        return self.run("(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
                        " return [r.left + Math.min(r.width / 2, 40), r.top + r.height / 2]; })()" % json.dumps(selector))

    def hover(self, selector):
        x, y = self._middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self._middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))

    def screenshot(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def print(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.printToPDF", printBackground=True, landscape=True)["data"]))
