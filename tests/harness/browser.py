"""A real browser over DevTools: Debian's chromium, headless, one for all tests."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import websocket

from harness.wait import wait_until

_FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions",
    "--disable-breakpad", "--disable-sync", "--metrics-recording-only", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb",
    "--disable-features=Translate,OptimizationHints,MediaRouter,SpareRendererForSitePerProcess", "--remote-debugging-port=0",
]
_LIMIT = 120  # seconds for one answer of the browser; the machine may be busy


class Browser:
    """One process; messages of all its pages over one socket."""

    def __init__(self):
        program = shutil.which("chromium")
        assert program, "chromium is missing: sh scripts/install_deps.sh test"
        self.folder = tempfile.TemporaryDirectory(prefix="omnibus-browser-", ignore_cleanup_errors=True)
        self.log_path = Path(self.folder.name) / "log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, *_FLAGS, f"--user-data-dir={self.folder.name}/profile", "about:blank"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, "LANG": "C.UTF-8", "HOME": self.folder.name},
            )
        try:
            address = wait_until(self._address, 60, "start of chromium")
        except AssertionError as error:
            self.close()
            raise AssertionError(f"{error}\n{self.log_path.read_text(errors='replace')[-3000:]}") from None
        self.socket = websocket.create_connection(address, timeout=_LIMIT, suppress_origin=True)
        self.ids = itertools.count(1)
        self.answers = {}
        self.sessions = {}
        self.used = []  # pages given back

    def _address(self):
        assert self.process.poll() is None, f"chromium ended with {self.process.returncode}"
        try:
            port, path = (Path(self.folder.name) / "profile/DevToolsActivePort").read_text().split("\n")[:2]
        except (FileNotFoundError, ValueError):
            return None
        return f"ws://127.0.0.1:{port}{path}"

    def call(self, method, session=None, **params):
        """The result of one command; events that come meanwhile go to their pages."""
        number = next(self.ids)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self.socket.send(json.dumps(message))
        while number not in self.answers:
            self._receive()
        answer = self.answers.pop(number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def pump(self, seconds):
        """Takes events for a while."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                self._receive()
            except websocket.WebSocketTimeoutException:
                break
            finally:
                self.socket.settimeout(_LIMIT)

    def _receive(self):
        message = json.loads(self.socket.recv())
        if "id" in message:
            self.answers[message["id"]] = message
        elif (page := self.sessions.get(message.get("sessionId"))) is not None:
            page.on_event(message["method"], message["params"])

    def new_page(self, url, fresh=False, **options):
        """A page as new. To start one takes half a second, so one that was given back is emptied and taken again,
        unless a `fresh` one is asked for."""
        if self.used and not fresh and "beside" not in options:
            page = self.used.pop()
            page.begin(url, **options)
            return page
        return Page(self, url, **options)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


class Page:
    """A page in a context of its own: nothing stored, nothing shared; or a second tab beside one. Keeps all that it
    logged and asked for."""

    def __init__(self, browser, url, beside=None, **options):
        self.browser = browser
        self.owns_context = beside is None
        self.context = beside.context if beside else browser.call("Target.createBrowserContext")["browserContextId"]
        self.target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.sessions[self.session] = self
        for domain in ("Page", "Runtime", "Network", "Log", "Audits"):
            self.call(domain + ".enable")
        self.begin(url, **options)

    def begin(self, url, width=1280, height=800, dark=False):
        self.complaints = []  # errors of the console and of scripts, violations of the policy
        self.said = []  # by console.info
        self.requests = []  # {url, method, postData, headers}
        self.paused = []  # requests that wait for an answer by hand
        self.resize(width, height)
        self.media(dark)
        if url:
            self.go(url)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def on_event(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(params["args"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] == "info":
            self.said += [arg.get("value") for arg in params["args"]]
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["entry"]))
        elif method == "Audits.issueAdded" and params["issue"]["code"] == "ContentSecurityPolicyIssue":
            self.complaints.append(json.dumps(params["issue"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"])
        elif method == "Fetch.requestPaused":
            self.paused.append(params)

    # Where it is and how it looks.

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.until("location.href !== 'about:blank' && document.documentElement.dataset.ready === 'true'")

    def reload(self):
        self.eval("delete document.documentElement.dataset.ready")
        self.call("Page.reload")
        self.until("document.documentElement.dataset.ready === 'true'")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ])

    def allow_clipboard(self):
        self.browser.call("Browser.grantPermissions", browserContextId=self.context,
                          permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    # Asking and waiting.

    def eval(self, expression, gesture=False, unsafe=True):
        """The value of an expression, awaited where it is a promise. Not `unsafe`: under the page's own policy."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True,
                           userGesture=gesture, allowUnsafeEvalBlockedByCSP=unsafe)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression[:200]}: {json.dumps(result['exceptionDetails'])[:2000]}")
        return result["result"].get("value")

    def until(self, expression, limit=20):
        return wait_until(lambda: self._quiet(expression), limit, expression)

    def _quiet(self, expression):
        found = f"(v => v instanceof Node ? true : v)({expression})"
        result = self.call("Runtime.evaluate", expression=found, returnByValue=True)
        return None if "exceptionDetails" in result else result["result"].get("value")

    def text(self, selector):
        return self.eval(f"document.querySelector({json.dumps(selector)}).innerText")

    def count(self, selector):
        return self.eval(f"document.querySelectorAll({json.dumps(selector)}).length")

    # Doing what a person does.

    def click(self, selector):
        """With the mouse, in the middle of what is seen; fails when something else lies there."""
        place = self.until(f"""(() => {{
          const node = document.querySelector({json.dumps(selector)});
          if (!node) return null;
          node.scrollIntoView({{block: "nearest"}});
          const box = node.getBoundingClientRect();
          const x = box.left + box.width / 2, y = box.top + box.height / 2;
          const hit = document.elementFromPoint(x, y);
          return hit && (node.contains(hit) || hit.contains(node)) ? [x, y] : null;
        }})()""")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, name, control=False, shift=False):
        code, number, text = _KEYS.get(name, ("Key" + name.upper(), ord(name.upper()[0]), name))
        modifiers = (2 if control else 0) + (8 if shift else 0)
        common = {"key": name, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        text = {"text": text} if text and not control else {}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def screenshot(self, path):
        import base64

        data = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def give_back(self):
        """Leaves nothing stored and nothing running, for the next one."""
        origin = self.eval("location.origin")
        self.call("Page.navigate", url="about:blank")
        if origin != "null":
            self.call("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
        self.browser.used.append(self)

    def close(self):
        self.browser.sessions.pop(self.session, None)
        self.browser.call("Target.closeTarget", targetId=self.target)
        if self.owns_context:
            self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)


_KEYS = {
    "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, ""),
    "ArrowDown": ("ArrowDown", 40, ""), "ArrowUp": ("ArrowUp", 38, ""), "Home": ("Home", 36, ""), "End": ("End", 35, ""),
    "/": ("Slash", 191, "/"), "?": ("Slash", 191, "?"), ",": ("Comma", 188, ","), " ": ("Space", 32, " "),
}
