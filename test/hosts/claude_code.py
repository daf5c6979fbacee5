"""Drives Claude Code."""

import drive


def prepare(s: drive.Setting) -> list[str]:
    s.env |= {"ANTHROPIC_BASE_URL": s.url, "ANTHROPIC_API_KEY": "imitation"}
    s.env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    if s.servers:  # or it defers servers' definitions, and sends none before its model searches
        s.env["ENABLE_TOOL_SEARCH"] = "false"
    s.install("claude-code")
    s.add_environ(s.home / ".claude.json", "mcpServers", "env")
    return [s.program("claude"), "-p", "go", "--debug-to-stderr"]


drive.main("Claude Code", prepare)
