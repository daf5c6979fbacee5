"""Drives OpenCode."""

import json

import drive


def prepare(s: drive.Setting) -> list[str]:
    modalities = {"input": ["text", "image"], "output": ["text"]}
    m = {"name": "m", "tool_call": True, "attachment": True, "modalities": modalities}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": s.url + "/v1", "apiKey": "imitation"},
        "models": {"m": {**m, "limit": {"context": 100000, "output": 10000}}},
    }
    settings = {
        "model": "imitation/m",
        "small_model": "imitation/m",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"imitation": provider},
    }
    (s.home / ".config/opencode").mkdir(parents=True)
    config = s.home / ".config/opencode/opencode.json"
    config.write_text(json.dumps(settings))
    s.install("opencode")
    s.add_environ(config, "mcp", "environment")
    return [s.program("opencode"), "run", "go"]


if __name__ == "__main__":
    drive.main("OpenCode", prepare)
