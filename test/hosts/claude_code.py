"""Drives Claude Code."""

import pathlib

import drive
import model


def prepare(s: drive.Setting) -> list[str]:
    s.env |= {"ANTHROPIC_BASE_URL": s.url, "ANTHROPIC_API_KEY": "imitation"}
    s.env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    if s.servers:  # or it defers servers' definitions, and sends none before its model searches
        s.env["ENABLE_TOOL_SEARCH"] = "false"
    s.install("claude-code")
    s.add_environ(s.home / ".claude.json", "mcpServers", "env")
    return [s.program("claude"), "-p", "go", "--debug-to-stderr"]


def search(trial: drive.Trial, prepare: drive.Prepare, directory: pathlib.Path) -> None:
    """search looks at what the tool search shows, whose tokens TestCookbook and TestContextCost count."""
    words = (drive.ROOT / "discovery/hosts/tool-search.txt").read_text()
    imitation = model.Model([])
    s = drive.setting(directory, imitation.url, adopts=True)
    command = prepare(s)
    del s.env["ENABLE_TOOL_SEARCH"]
    for _ in range(5):  # some conversations are over before the server is there
        imitation.seen = []
        drive.end(drive.started(s, command, directory), drive.PATIENCE)
        texts = [v for request in imitation.seen for o in model.walk(request) for v in o.values() if isinstance(v, str)]
        shown = next((t for t in texts if "mcp__files__write_file" in t), "")
        if shown and any(n.endswith("run_python") for n in imitation.tools()):
            break
    names = [n for n in shown.partition(words)[2].splitlines() if n.startswith("mcp__files__")]
    trial.check("its tool search names each tool of a server in a line, in the words that are counted", len(names) == 14, shown)
    loaded = imitation.definitions()
    trial.check("it loads none of them", not any("files" in n for n in loaded), list(loaded))
    trial.check("it loads run_python, which asks for that", any(n.endswith("run_python") for n in loaded), list(loaded))
    drive.gone(trial, "nothing is left", directory)


if __name__ == "__main__":
    drive.main("Claude Code", prepare, search=search, by_host=drive.by_host)
