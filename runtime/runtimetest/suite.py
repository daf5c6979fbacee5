"""Runs Python's own tests, and prints as JSON how many there were and which failed or were skipped. Arguments are regrtest's."""

import json
import subprocess
import sys
import xml.etree.ElementTree as tree

REPORT = "/workspace/report.xml"

done = subprocess.run(
    [sys.executable, "-B", "-m", "test", "-j4", "-q", "--timeout", "300", "--tempdir", "/tmp", "--junit-xml", REPORT, *sys.argv[1:]],
    cwd="/workspace",
    stdin=subprocess.DEVNULL,
    stdout=2,
)
ran, found = 0, {"failed": [], "skipped": []}
for case in tree.parse(REPORT).iter("testcase"):
    ran += 1
    for kind, tags in (("failed", ("failure", "error")), ("skipped", ("skipped",))):
        if any(case.find(tag) is not None for tag in tags):
            found[kind].append(case.get("name"))
print(json.dumps({"ran": ran, **{kind: sorted(set(names)) for kind, names in found.items()}}))
