"""Drives MCP Inspector, which has no model: each call is a run of its command line."""

import pathlib
import subprocess
import tempfile

import drive

NODE = drive.ROOT / ".cache/npm/node_modules/.bin"


def inspect(s: drive.Setting, directory: pathlib.Path, *arguments: str) -> str:
    environ = [word for pair in s.environ.items() for word in ("-e", "=".join(pair))]
    command = [str(NODE / "mcp-inspector"), "--cli", *environ, s.bridge, "--method", *arguments]
    done = subprocess.run(command, cwd=directory, env=s.env, capture_output=True, text=True)
    return done.stdout + done.stderr


def main() -> None:
    trial = drive.Trial("Inspector")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name) / "talk"
        s = drive.setting(directory, "")
        listed = inspect(s, directory, "tools/list")
        trial.check("run_python is listed", '"run_python"' in listed, listed)
        trial.check("no tool of a server is", '"echo"' not in listed, listed)
        for what, code, want in drive.CONVERSATION:
            call = ("tools/call", "--tool-name", "run_python", "--tool-arg", f"code={code}")
            got = inspect(s, directory, *call)
            trial.check(what, want in got, got)
        drive.gone(trial, "nothing is left", directory)
    raise SystemExit(1 if trial.failed else 0)


main()
