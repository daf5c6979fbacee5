"""Has mcp-bridge keep secrets in a gnome-keyring: open, locked, one that hangs, and one that is gone.

keyring.py PROGRAM

The keyring and its bus have a home made for the test, and none of the user's own is asked.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds for one command, on a slow machine
SERVER = pathlib.Path(__file__).with_name("server.py")
COLLECTION = "/org/freedesktop/secrets/collection/login"


def until(what: str, holds: Callable[[], bool]) -> None:
    """until waits for what to hold."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"after {PATIENCE} s it is still not so that {what}"
        time.sleep(0.05)


class Keyring:
    """Keyring is a gnome-keyring on a bus, in a home of its own."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.daemon: subprocess.Popen[bytes] | None = None
        self.bus: subprocess.Popen[str] | None = None
        self.env = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(home / "run"),
        }

    def open(self) -> None:
        """open starts the bus and the keyring."""
        (self.home / "run").mkdir(mode=0o700)
        self.bus = subprocess.Popen(
            ["dbus-daemon", "--session", "--nofork", "--print-address=1"],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert self.bus.stdout
        self.env["DBUS_SESSION_BUS_ADDRESS"] = self.bus.stdout.readline().strip()
        self.start()

    def start(self) -> None:
        """start starts the keyring, unlocked as by a login. None runs."""
        self.daemon = subprocess.Popen(
            ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self.daemon.stdin
        self.daemon.stdin.write(b"a password")
        self.daemon.stdin.close()
        self.wait_for_owner(True)
        until("it is unlocked", lambda: "false" in self.property(COLLECTION, "Collection", "Locked"))

    def stop(self) -> None:
        self.daemon.kill()
        self.daemon.wait()
        self.wait_for_owner(False)

    def wait_for_owner(self, there: bool) -> None:
        """wait_for_owner waits until a keyring is on the bus, or none is. It starts none."""
        ask = ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/"]
        ask += ["org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"]

        def said() -> str:
            return subprocess.run(
                ask, env=self.env, capture_output=True, text=True, timeout=PATIENCE
            ).stdout

        until(f"a keyring on the bus is {there}", lambda: f"boolean {there}".lower() in said())

    def property(self, path: str, interface: str, name: str) -> str:
        """property returns what the keyring says of an object, as dbus-send prints it."""
        done = subprocess.run(
            ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", path]
            + ["org.freedesktop.DBus.Properties.Get"]
            + [f"string:org.freedesktop.Secret.{interface}", f"string:{name}"],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.stdout

    def lock(self) -> None:
        subprocess.run(
            ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets"]
            + ["/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock"]
            + [f"array:objpath:{COLLECTION}"],
            env=self.env,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=PATIENCE,
        )
        assert "true" in self.property(COLLECTION, "Collection", "Locked"), "it isn't locked"

    def values(self) -> list[str]:
        """values returns the secrets of mcp-bridge that the keyring has, as another program is told."""
        done = subprocess.run(
            ["secret-tool", "search", "--all", "service", "mcp-bridge"],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        lines = done.stdout.splitlines()
        return sorted(line.removeprefix("secret = ") for line in lines if line.startswith("secret = "))

    def close(self) -> None:
        for process in (self.daemon, self.bus):
            if process:
                process.kill()
                process.wait()


class Test:
    """Test runs the program, and notes what it does wrong."""

    def __init__(self, program: str, keyring: Keyring) -> None:
        self.program, self.keyring, self.wrong = program, keyring, 0

    def run(self, *args: str, says: str, code: int = 0, given: str = "", unsaid: str = "\0") -> str:
        """run checks the exit code, and that the output contains says, and not unsaid."""
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [self.program, *args],
                env=self.keyring.env,
                input=given,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            self.fail(f"mcp-bridge {' '.join(args)} hangs")
            return ""
        out = done.stdout + done.stderr
        print(f"  {time.monotonic() - begun:5.1f} s  mcp-bridge {' '.join(args)}: {says}")
        if done.returncode != code or says not in " ".join(out.split()) or unsaid in out:
            self.fail(f"it ended with {done.returncode}, not {code}, and said\n{out}")
        return out

    def fail(self, why: str) -> None:
        self.wrong += 1
        print(f"FAIL: {why}")

    def same(self, what: str, got: object, want: object) -> None:
        print(f"           {what}: {got}")
        if got != want:
            self.fail(f"{what} is {got}, not {want}")

    def holding(self, value: str) -> list[str]:
        """holding returns the files of the home that hold a value in plain text."""
        home = self.keyring.home
        files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
        return sorted(str(path.relative_to(home)) for path in files if value.encode() in path.read_bytes())


def write(path: pathlib.Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")


def tool(value: str) -> str:
    """tool returns the name of the tool of server.py where it is given a value."""
    return "given_" + hashlib.sha256(value.encode()).hexdigest()[:16]


def opened(t: Test) -> None:
    print("a keyring that is open")
    home, entry = t.keyring.home, {"command": "python3", "args": [str(SERVER)]}
    t.run("secret", "set", "one", given="first-value-1\n", says="set one (kept in the keyring)")
    write(
        home / ".config/mcp/servers/mine.json",
        {"mcpServers": {"mine": {**entry, "env": {"TOKEN": "${secret:one}"}}}},
    )
    t.run("secret", "list", says="one keyring mine")
    t.run("servers", "--check", says="1 ok, 0 failing")
    t.run("tools", "mine", says=tool("first-value-1"))
    t.run("secret", "set", "one", given="later-value-1\n", says="kept in the keyring")
    t.run("tools", "mine", says=tool("later-value-1"))
    t.same("the keyring has", t.keyring.values(), ["later-value-1"])
    t.same("files with it", t.holding("-value-1"), [])

    print("servers that adopt moves")
    code = home / ".config/Code/User/mcp.json"
    asks = {"type": "promptString", "id": "tok", "description": "Token of the service", "password": True}
    write(code, {"inputs": [asks], "servers": {"asking": {**entry, "env": {"TOKEN": "${input:tok}"}}}})
    zed = home / ".config/zed/settings.json"
    write(zed, {"context_servers": {"plain": {**entry, "env": {"API_TOKEN": "plain-value-3"}}}})
    t.run("install", "vscode", "zed", "--yes", says="Zed: installed in")
    t.run("adopt", "--yes", given="asked-value-2\n", says="moved to")
    t.same("the keyring has", t.keyring.values(), ["asked-value-2", "later-value-1", "plain-value-3"])
    t.same("files with what was asked for", t.holding("asked-value-2"), [])
    own = [path for path in t.holding("plain-value-3") if not path.startswith(".config/zed/settings.json")]
    t.same("files with the other one, but Zed's and its copies", own, [])
    t.run("servers", says="3 used", unsaid="disabled")
    t.run("servers", "--check", says="3 ok, 0 failing")
    t.run("tools", "asking", says=tool("asked-value-2"))
    t.run("tools", "plain", says=tool("plain-value-3"))
    t.run("adopt", "--undo", "--yes", says="taken back")
    t.same("the keyring has", t.keyring.values(), ["later-value-1"])
    t.run("secret", "set", "two", given="value-4\n", says="kept in the keyring")
    t.run("secret", "remove", "two", says="removed two")
    t.same("the keyring has", t.keyring.values(), ["later-value-1"])


def shut(t: Test, how: str, next_step: str) -> None:
    """shut tries a keyring that gives nothing."""
    print(f"a keyring that {how}")
    t.run("secret", "list", says="one keyring mine")
    t.run("servers", "--check", code=1, says=next_step, unsaid="secret set")
    t.run("secret", "remove", "one", code=1, says=next_step)
    name = how.replace(" ", "-")
    out = t.run("secret", "set", name, given="value-5\n", says="kept in a file that only you can read")
    if "unlock it, and set the secret again" not in out:
        t.fail(f"it doesn't say how the keyring may have it: {out}")
    t.run("secret", "list", says=name)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # and what was started with it
    home = pathlib.Path(tempfile.mkdtemp(prefix="keyring-"))
    keyring = Keyring(home)
    t = Test(sys.argv[1], keyring)
    try:
        keyring.open()
        opened(t)
        keyring.lock()
        shut(t, "is locked", "see that it runs and is unlocked, and try again")
        keyring.stop()
        keyring.start()
        print("the keyring, unlocked")
        t.run("servers", "--check", says="2 ok, 0 failing")
        t.run("secret", "set", "is-locked", given="value-6\n", says="kept in the keyring")
        t.same("the keyring has", keyring.values(), ["later-value-1", "value-6"])
        t.same("files with what it was before", t.holding("value-5"), [])
        keyring.daemon.send_signal(signal.SIGSTOP)
        shut(t, "hangs", "did not answer within 10s; unlock it, and try again")
        keyring.stop()  # the bus starts another, which is locked
        shut(t, "was killed", "see that it runs and is unlocked, and try again")
        keyring.bus.kill()
        keyring.bus.wait()
        shut(t, "has no bus", "see that it runs and is unlocked, and try again")
        del keyring.env["DBUS_SESSION_BUS_ADDRESS"]
        print("no keyring")
        t.run("servers", "--check", code=1, says="set DBUS_SESSION_BUS_ADDRESS", unsaid="secret set")
    finally:
        keyring.close()
        shutil.rmtree(home, ignore_errors=True)
    if t.wrong:
        sys.exit(f"FAIL: {t.wrong} of what was tried over a real keyring")
    print("ok")


main()
