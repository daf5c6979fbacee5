"""Drives Codex."""

import json

import drive


def prepare(s: drive.Setting) -> list[str]:
    s.env["IMITATION_KEY"] = "imitation"
    environ = ", ".join(f"{name} = {json.dumps(value)}" for name, value in s.environ.items())
    config = s.home / ".codex/config.toml"
    (s.home / ".codex").mkdir()
    config.write_text(f"""
model = "gpt-5"
model_provider = "imitation"
[model_providers.imitation]
name = "imitation"
base_url = "{s.url}/v1"
env_key = "IMITATION_KEY"
wire_api = "responses"
""")
    s.install("codex")
    config.write_text(config.read_text().replace("env = { ", f"env = {{ {environ}, "))
    for name, server in s.servers.items():  # which Codex waits for
        command, args = json.dumps(server["command"]), json.dumps(server.get("args", []))
        own = f"[mcp_servers.{name}]\ncommand = {command}\nargs = {args}\nrequired = true\n"
        config.write_text(config.read_text() + own)
    return [s.program("codex"), "exec", "--skip-git-repo-check", "go"]


if __name__ == "__main__":
    drive.main("Codex", prepare, by_host=drive.by_host)
