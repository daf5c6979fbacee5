"""Has pages in a real browser call a bridge that serves over HTTP on loopback, as an attacker's would.

    test/browser/pages.py CHROMIUM BRIDGE

A page of another site calls the bridge by its address. Another one is made to be of the bridge's own
origin, as by DNS rebinding: its name leads to loopback, and the bridge takes the port from which it
came. Neither may read an answer, or have anything done. A site that the bridge allows may do both,
so that a browser which can't reach the bridge at all fails here too.
"""

import contextlib
import http.server
import json
import os
import queue
import re
import socket
import subprocess
import sys
import tempfile
import threading

CHROMIUM, BRIDGE = sys.argv[1:]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}},
}
# What a page does: it calls the bridge in each way that a page can, until the port is the bridge's,
# and reports what it saw. A form's type of body needs no preflight, and its text can be made to be JSON.
PAGE = """<!doctype html><body><script>
const body = JSON.stringify(INITIALIZE), json = "application/json", accept = json + ", text/event-stream";
async function seen(type, mode) {
  try {
    const answer = await fetch(TARGET, {method: "POST", mode, body, headers: {"Content-Type": type, Accept: accept}});
    return answer.type === "opaque" ? "opaque" : answer.status + " " + (await answer.text()).slice(0, 150);
  } catch (error) { return "blocked"; }
}
async function read() {
  try {
    const answer = await fetch(TARGET, {mode: "no-cors", headers: {Accept: "text/event-stream"}});
    return answer.type === "opaque" ? "opaque" : answer.status + " " + (await answer.text()).slice(0, 150);
  } catch (error) { return "blocked"; }
}
async function form() {
  const frame = document.body.appendChild(Object.assign(document.createElement("iframe"), {name: "answer"}));
  const fields = {method: "POST", action: TARGET, enctype: "text/plain", target: "answer"};
  const sent = document.body.appendChild(Object.assign(document.createElement("form"), fields));
  const field = {name: body.slice(0, -1) + ',"x":"', value: '"}'};
  sent.appendChild(Object.assign(document.createElement("input"), field));
  const loaded = new Promise((done) => { frame.onload = done; });
  sent.submit();
  await loaded;
  try { return frame.contentDocument.body.textContent.slice(0, 150); } catch (error) { return "opaque"; }
}
async function main() {
  let ready = false;
  while (!ready) ready = (await (await fetch(REPORT + "/ready")).text()) === "yes";
  const report = {json: await seen(json, "cors"), plain: await seen("text/plain", "no-cors"),
    get: await read(), form: await form()};
  await fetch(REPORT + "/report", {method: "POST", body: JSON.stringify(report)});
}
main();
</script>"""


class Pages(http.server.ThreadingHTTPServer):
    """A site: it serves a page at /, says when the bridge is there, and takes the page's report."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.connections = []
        self.port = self.server_address[1]
        self.page, self.ready, self.loaded, self.reports = "", threading.Event(), threading.Event(), queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def show(self, target, report):
        """Sets what the page calls, and to which site it reports."""
        page = PAGE.replace("INITIALIZE", json.dumps(INITIALIZE)).replace("TARGET", json.dumps(target))
        self.page = page.replace("REPORT", json.dumps(report))

    def get_request(self):
        connection, peer = super().get_request()
        self.connections.append(connection)
        return connection, peer

    def close(self):
        """Ends the site and its connections: a browser opens some ahead, and would use them later."""
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):  # it is closed already
                connection.shutdown(socket.SHUT_RDWR)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/ready":
            self.server.loaded.set()
            self.answer("yes" if self.server.ready.wait(1) else "no", "text/plain")
        elif self.path == "/":
            self.answer(self.server.page, "text/html")
        else:
            self.send_error(404)

    def do_POST(self):
        report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer("", "text/plain")
        self.server.reports.put(report)

    def answer(self, text, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Bridge:
    """A bridge that serves over HTTP. Once it has ended, its log's lines of sessions that were begun, and of requests
    that were refused for their Host or Origin, are in sessions and refused."""

    def __init__(self, address, *flags):
        self.sessions, self.refused, self.reader = [], [], None
        self.process = subprocess.Popen(
            [BRIDGE, "serve", "--http", address, *flags],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "MCP_BRIDGE_CONFIG": "", "MCP_BRIDGE_LOG_LEVEL": "debug"},
            text=True,
        )
        for line in self.process.stderr:
            if found := re.search(r"msg=listening.*url=(\S+)", line):
                self.url = found[1].strip('"')
                break
        else:
            self.__exit__()
            sys.exit("FAIL: the bridge doesn't listen")
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            if "a session has begun" in line:
                self.sessions.append(line)
            if "a request was refused" in line and "status=403" in line:
                self.refused.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        if self.reader:
            self.reader.join()


def browse(url, report, ready=None):
    """Returns what the page at url reports, once ready has been called after it was loaded."""
    with tempfile.TemporaryDirectory() as profile:
        browser = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
            + ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
            + ["--disable-dev-shm-usage", "--remote-debugging-port=0", "--no-proxy-server"]
            + ["--host-resolver-rules=MAP *.example 127.0.0.1", "--user-data-dir=" + profile, url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            if not report.loaded.wait(120):
                sys.exit("FAIL: the browser has not loaded " + url)
            if ready:
                ready()
            report.ready.set()
            return report.reports.get(timeout=120)
        except queue.Empty:
            sys.exit("FAIL: the page has not reported: " + url)
        finally:
            os.killpg(browser.pid, 9)
            browser.wait()
            report.loaded.clear()
            report.ready.clear()


failed = False


def check(what, good, saw):
    global failed
    failed = failed or not good
    print("ok  " if good else "FAIL", what + ":", json.dumps(saw))


def across(*flags):
    """Has a page of another site call a bridge, and returns what it saw and the bridge, which has ended."""
    site = Pages()
    origin = f"http://app.example:{site.port}"
    with Bridge("127.0.0.1:0", *(flag.replace("ORIGIN", origin) for flag in flags)) as bridge:
        site.show(bridge.url, origin)
        saw = browse(origin, site)
    site.close()
    return saw, bridge


def rebound():
    """Has a page call the bridge that has taken the place of its own site, under its own name."""
    report, site = Pages(), Pages()
    site.show("/mcp", f"http://report.example:{report.port}")
    with contextlib.ExitStack() as ends:
        bridges = []

        def ready():
            site.close()
            bridges.append(ends.enter_context(Bridge(f"127.0.0.1:{site.port}")))

        saw = browse(f"http://rebound.example:{site.port}", report, ready)
    report.close()
    return saw, bridges[0]


saw, bridge = across("--allow-origin", "ORIGIN")
answered = saw["json"].startswith("200 ") and '"result"' in saw["json"]
check("a site that is allowed", answered and len(bridge.sessions) == 1 and not bridge.refused, saw)
saw, bridge = across()
unread = {"json": "blocked", "plain": "opaque", "get": "opaque", "form": "opaque"}
# The question before json, plain and form are refused for their Origin; a GET has none, and names no session.
refused = len(bridge.refused) == 3 and all("not served" in line for line in bridge.refused)
check("a page of another site", saw == unread and refused and not bridge.sessions, saw)
saw, bridge = rebound()
refused = all(saw[way].startswith("403 ") for way in ("json", "plain", "get")) and "isn't served" in saw["form"]
check("a page under a name that was rebound", refused and not bridge.sessions, saw)
sys.exit(failed)
