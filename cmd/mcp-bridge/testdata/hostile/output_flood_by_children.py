# Has twenty processes write at once, and leaves ten of them writing.
# want: {"status":"ok","stdout":"*","truncated":true}
# next: {"status":"ok","stdout":"*","calls":1}
import os
import subprocess

for _ in range(10):
    subprocess.Popen(["sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"])
brief = [subprocess.Popen(["head", "-c", "3000000", "/dev/zero"]) for _ in range(10)]
for process in brief:
    process.wait()
