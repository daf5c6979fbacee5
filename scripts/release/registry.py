#!/usr/bin/env python3
"""Serves packed npm packages on loopback as a registry does, until it is killed: registry.py FILE.tgz...

It prints its address first.
"""

import base64
import hashlib
import http.server
import json
import pathlib
import sys
import tarfile

packages: dict[str, dict] = {}
files = {pathlib.Path(name).name: pathlib.Path(name).read_bytes() for name in sys.argv[1:]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.lstrip("/")
        body = files.get(name)
        if body is None and name in packages:
            body = json.dumps(packages[name]).encode()
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
url = f"http://127.0.0.1:{server.server_address[1]}/"
for file, data in files.items():
    with tarfile.open(next(name for name in sys.argv[1:] if name.endswith(file))) as packed:
        package = json.load(packed.extractfile("package/package.json"))
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    package["dist"] = {"tarball": url + file, "integrity": "sha512-" + digest}
    name, version = package["name"], package["version"]
    packages[name] = {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}
print(url, flush=True)
server.serve_forever()
