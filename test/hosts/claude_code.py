"""Drives Claude Code."""

import json

import drive


def prepare(s: drive.Setting) -> list[str]:
    s.env |= {"ANTHROPIC_BASE_URL": s.url, "ANTHROPIC_API_KEY": "imitation"}
    s.env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    config = json.dumps({"mcpServers": {"bridge": {"command": s.bridge, "env": s.environ}}})
    command = [s.program("claude"), "-p", "go", "--mcp-config", config, "--strict-mcp-config"]
    return [*command, "--allowedTools", "mcp__bridge__run_python", "--debug-to-stderr"]


drive.main("Claude Code", prepare)
