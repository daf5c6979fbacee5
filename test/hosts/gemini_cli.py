"""Drives Gemini CLI."""

import json

import drive


def prepare(s: drive.Setting) -> list[str]:
    s.env |= {"GEMINI_API_KEY": "imitation", "GOOGLE_GEMINI_BASE_URL": s.url}
    s.env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
    settings = {
        "mcpServers": {"bridge": {"command": s.bridge, "env": s.environ, "trust": True}},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (s.home / ".gemini").mkdir()
    (s.home / ".gemini/settings.json").write_text(json.dumps(settings))
    return [s.program("gemini"), "-m", "gemini-2.5-flash", "-p", "go", "-y"]


drive.main("Gemini CLI", prepare)
