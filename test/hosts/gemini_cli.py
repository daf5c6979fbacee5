"""Drives Gemini CLI."""

import json

import drive


def prepare(s: drive.Setting) -> list[str]:
    s.env |= {"GEMINI_API_KEY": "imitation", "GOOGLE_GEMINI_BASE_URL": s.url}
    s.env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (s.home / ".gemini").mkdir()
    if s.servers:  # mcp-bridge goes by the file, not by the variable
        trusted = {str(s.home.parent): "TRUST_FOLDER"}
        (s.home / ".gemini/trustedFolders.json").write_text(json.dumps(trusted))
    config = s.home / ".gemini/settings.json"
    config.write_text(json.dumps(settings))
    for server in s.servers.values():
        server["trust"] = True  # or its tools aren't offered where there is no user to ask
    s.install("gemini-cli")
    s.add_environ(config, "mcpServers", "env")
    return [s.program("gemini"), "-m", "gemini-2.5-flash", "-p", "go"]


if __name__ == "__main__":
    drive.main("Gemini CLI", prepare, by_host=drive.by_host)
