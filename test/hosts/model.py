"""Imitates the model APIs that hosts call, on loopback: Anthropic's, OpenAI's two and Gemini's.

A model here follows a script: a list of arguments for run_python. It answers the n-th request of a
conversation with a call of run_python with the n-th arguments, and after the last one says "done".
Every request that offers tools is kept, so that a test can see what the host showed its model.
"""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any

Json = dict[str, Any]


def walk(value: Any) -> Any:
    """walk yields every object within a value."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from walk(item)


class Model(http.server.ThreadingHTTPServer):
    """Model serves all four APIs. seen are the requests, oldest first."""

    daemon_threads = True

    def __init__(self, script: list[Json]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.seen: list[Json] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def tools(self) -> set[str]:
        """tools are the names of all tools that the host offered in its last request."""
        return tool_names(self.seen[-1]) if self.seen else set()

    def definitions(self) -> dict[str, str]:
        """definitions are the tools that the host offered in its last request, as it wrote them."""
        return definitions(self.seen[-1].get("tools", [])) if self.seen else {}

    def text(self, part: str) -> str:
        """text are the lines with a part, of the first text in the last request that has it."""
        for value in walk(self.seen[-1] if self.seen else {}):
            for text in value.values():
                if isinstance(text, str) and part in text:
                    return "\n".join(line for line in text.splitlines() if part in line)
        return ""

    def results(self) -> list[Any]:
        """results are the tool results of the longest conversation, as the host sent them."""
        return max((results(r) for r in self.seen), key=len, default=[])


def tool_names(request: Json) -> set[str]:
    names = set()
    for tool in walk(request.get("tools", [])):
        if isinstance(tool.get("name"), str) and ("parameters" in tool or "input_schema" in tool or "description" in tool):
            names.add(tool["name"])
    return names


def definitions(tools: Any, group: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for tool in tools:
        for inner in ("tools", "functionDeclarations"):  # Codex's and Gemini's groups
            if inner in tool:
                found |= definitions(tool[inner], tool.get("name", ""))
        tool = tool.get("function", tool)
        if isinstance(tool.get("name"), str) and "tools" not in tool:
            found[group + tool["name"]] = json.dumps(tool, ensure_ascii=False, separators=(",", ":"))
    return found


def results(request: Json) -> list[Any]:
    found = []
    for part in walk([request.get(key) for key in ("messages", "input", "contents")]):
        if part.get("type") in ("tool_result", "function_call_output"):
            found.append(part)
        elif part.get("role") == "tool" or "functionResponse" in part:
            found.append(part)
    return found


class Handler(http.server.BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request: Json = json.loads(body or b"{}")
        name = next((n for n in sorted(tool_names(request)) if n.endswith("run_python")), "")
        if name:
            self.server.seen.append(request)
        done = len(results(request))
        arguments = self.server.script[done] if name and done < len(self.server.script) else None
        call = f"call_{done}"
        if "count_tokens" in self.path or "countTokens" in self.path:
            return self.reply({"input_tokens": 10, "totalTokens": 10})
        if self.path.split("?")[0].endswith("/messages"):
            return self.events(anthropic(name, arguments, call), named=True)
        if self.path.endswith("/responses"):
            return self.events(openai_responses(name, arguments, call, request), named=True)
        if self.path.endswith("/chat/completions"):
            return self.events([*openai_chat(name, arguments, call), "[DONE]"])
        if "eneratecontent" in self.path.lower():
            answer = gemini(name, arguments)
            return self.events([answer]) if "stream" in self.path else self.reply(answer)
        self.reply({})

    def do_GET(self) -> None:
        self.reply({"data": [], "models": []})

    def do_HEAD(self) -> None:
        self.reply({})

    def reply(self, value: Json) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def events(self, events: list[Any], named: bool = False) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            if named:
                self.wfile.write(f"event: {event['type']}\n".encode())
            text = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"data: {text}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


def anthropic(name: str, arguments: Json | None, call: str) -> list[Json]:
    if arguments is None:
        block: Json = {"type": "text", "text": ""}
        delta: Json = {"type": "text_delta", "text": "done"}
    else:
        block = {"type": "tool_use", "id": "toolu_" + call, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    message = {"id": "msg_" + call, "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    stop = "end_turn" if arguments is None else "tool_use"
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def openai_responses(name: str, arguments: Json | None, call: str, request: Json) -> list[Json]:
    if arguments is None:
        item: Json = {"type": "message", "id": "m_" + call, "role": "assistant"}
        item["content"] = [{"type": "output_text", "text": "done", "annotations": []}]
    else:
        item = {"type": "function_call", "id": "f_" + call, "call_id": call, "name": name}
        item["arguments"] = json.dumps(arguments)
        for tool in request.get("tools", []):  # Codex groups a server's tools
            if tool.get("type") == "namespace" and any(t.get("name") == name for t in tool["tools"]):
                item["namespace"] = tool["name"]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "r_" + call, "object": "response", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {"id": "r_" + call}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed"}},
    ]


def openai_chat(name: str, arguments: Json | None, call: str) -> list[Json]:
    if arguments is None:
        delta: Json = {"role": "assistant", "content": "done"}
    else:
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"index": 0, "id": call, "type": "function", "function": function}]
        delta = {"role": "assistant", "content": None, "tool_calls": calls}
    chunk = {"id": "c_" + call, "object": "chat.completion.chunk", "created": 1, "model": "m"}
    end = "stop" if arguments is None else "tool_calls"
    return [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
    ]


def gemini(name: str, arguments: Json | None) -> Json:
    part: Json = {"text": "done"} if arguments is None else {"functionCall": {"name": name, "args": arguments}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}
