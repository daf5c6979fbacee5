"""Drives Codex."""

import json

import drive


def prepare(s: drive.Setting) -> list[str]:
    s.env["IMITATION_KEY"] = "imitation"
    environ = ", ".join(f"{name} = {json.dumps(value)}" for name, value in s.environ.items())
    (s.home / ".codex").mkdir()
    (s.home / ".codex/config.toml").write_text(f"""
model = "gpt-5"
model_provider = "imitation"
[model_providers.imitation]
name = "imitation"
base_url = "{s.url}/v1"
env_key = "IMITATION_KEY"
wire_api = "responses"
[mcp_servers.bridge]
command = "{s.bridge}"
env = {{ {environ} }}
default_tools_approval_mode = "approve" # codex exec has no one to ask
""")
    return [s.program("codex"), "exec", "--skip-git-repo-check", "go"]


drive.main("Codex", prepare)
