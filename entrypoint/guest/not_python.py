"""Hints for code of other languages, and for commands of a notebook or a shell."""

from __future__ import annotations

import linecache
import re

from guest import wire
from guest.expressions import MAX_LINE

_NETWORK = set("curl wget git gh npm npx kubectl docker brew apt apt-get".split())
_FILES = set("ls cd cat grep find echo export mkdir rm cp mv sed awk head tail jq ps chmod pwd which".split())
_PROGRAMS = set("pip pip3 uv uvx python python3 node sudo make bash sh".split())
_SHELL = _NETWORK | _FILES | _PROGRAMS
_JAVASCRIPT_SAID = "this is JavaScript, and run_python runs Python"
_IN_PYTHON = "write it in Python, x = mcp_server.tool(name=value)"
_INSTALL = re.compile(
    r"^(sudo\s+)?(py\w*\s+-m\s+)?(pip3?|uv|conda|apt|apt-get|brew|npm)\b.*\b(install|add)\b"
)
_JAVASCRIPT = re.compile(
    r"^\s*(const|let|var)\s+[\w{\[]|^\s*(async\s+)?function\b|=>|^\s*(console|JSON|Object)\."
    r"|^\s*(for|if|while)\s*\(.*\)\s*\{|^\s*//|^\s*import\s+.*\bfrom\s+['\"]"
    r"|^\s*export\s+(const|default|async|function)\b|===|!==|\}\s*catch\s*\("
)
_TYPESCRIPT = re.compile(
    r"^\s*(interface|enum)\s+\w+|^\s*type\s+\w+\s*=\s*\{|^\s*(const|let|var)\s+\w+\s*:\s*\w"
    r"|\)\s*:\s*(Promise|string|void|number)\b"
)


def hint(error: SyntaxError, proxies: list[str], installed: str) -> str:
    """installed says what is there instead of what can be installed."""
    line = (error.text or linecache.getline(wire.USER_FILE, error.lineno or 0))[:MAX_LINE].strip()
    if line.startswith("!") or (line.startswith("#!") and "python" not in line):
        return _command(line.lstrip("#!").strip(), proxies, installed)
    if re.match(r"%{1,2}\w", line):
        return "this is a command of a notebook, and figures show by themselves here: leave the line out"
    if line.startswith("return") and "outside function" in str(error.msg):
        value = line[len("return") :].strip().rstrip(";")
        return f"the value of a last line is shown: write {value or 'nothing'} in place of {line}"
    if said := _script(error):
        return said
    words = line.split()
    if words and words[0] in _SHELL and len(words) > 1 and not re.match(r"[=(.,:\[]", words[1]):
        return _command(line, proxies, installed)
    return ""


def _command(line: str, proxies: list[str], installed: str) -> str:
    """A line of a shell."""
    if _INSTALL.search(line):
        return f"{installed}: leave the line out"
    if line.split()[:1] and line.split()[0] in _NETWORK:
        listed = ", ".join(proxies[:10])
        way = (
            f"call a tool of a server instead: {listed}"
            if listed
            else "this run has no server to call instead"
        )
        return f"this is a command of a shell, and there is no network in here; {way}"
    quoted = '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"this is a command of a shell; write: import subprocess; subprocess.run({quoted}, shell=True)"


def _script(error: SyntaxError) -> str:
    """JavaScript or TypeScript, with the line as Python has it where that can be said."""
    lines = [line for line in linecache.getlines(wire.USER_FILE)[:200] if len(line) <= MAX_LINE]
    typed = any(_TYPESCRIPT.search(line) for line in lines)
    if not typed and not any(_JAVASCRIPT.search(line) for line in lines):
        return ""
    script = (line for line in lines if _JAVASCRIPT.search(line) or _TYPESCRIPT.search(line))
    mended = next(filter(None, map(translated, script)), "")
    said = _JAVASCRIPT_SAID.replace("JavaScript", "TypeScript") if typed else _JAVASCRIPT_SAID
    return f"{said}; write: {mended}" if mended else f"{said}: {_IN_PYTHON}"


def translated(line: str) -> str:
    """A line of JavaScript as Python has it; "" where that isn't Python after all."""
    line = line.strip().rstrip(";").rstrip()
    if loop := re.fullmatch(r"for\s*\(\s*(?:const|let|var)\s+(\w+)\s+of\s+(.+)\)\s*\{?", line):
        return f"for {loop[1]} in {_expression(loop[2])}:"
    if declared := re.fullmatch(r"(?:export\s+)?(?:const|let|var)\s+(\w+)\s*(?::[^=]+)?=\s*(.+)", line):
        value = declared[2].removeprefix("await ")
        wait = "await " if value != declared[2] else ""
        python = f"{declared[1]} = {wait}{_expression(value.lstrip())}"
    elif shown := re.fullmatch(r"console\.\w+\((.*)\)", line):
        python = f"print({_expression(shown[1])})"
    else:
        return ""
    return python if _compiles(python) else ""


def _expression(text: str) -> str:
    text = re.sub(r"([{,]\s*)([A-Za-z_]\w*)\s*:", r'\1"\2":', text)
    text = re.sub(
        r"`([^`]*)`", lambda found: 'f"' + found[1].replace("${", "{").replace('"', "'") + '"', text
    )
    text = re.sub(r"([\w.]+)\.length\b", r"len(\1)", text)
    words = {"===": "==", "!==": "!=", "true": "True", "false": "False", "null": "None"}
    text = re.sub(r"[=!]==|\b(true|false|null)\b", lambda found: words[found[0]], text)
    return re.sub(r"\bnew\s+", "", text)


def _compiles(python: str) -> bool:
    import _ast

    flags = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | _ast.PyCF_ONLY_AST
    try:
        compile(python, "<mended>", "exec", flags)
    except (SyntaxError, ValueError):
        return False
    return True


def undefined(name: str, line: str, proxies: list[str], installed: str) -> str:
    """A name of JavaScript's or a shell's in a line that parses as Python's."""
    if name == line and name in ("python", "python3", "py"):
        return "this line only names the language: leave it out"
    if name in _SHELL and (line == name or line.startswith(f"{name} -")):
        return _command(line, proxies, installed)
    if name in ("console", "JSON"):
        usual = {"console": "print(value)", "JSON": "json.dumps(value), with import json"}
        return f"{_JAVASCRIPT_SAID}; write: {translated(line) or usual[name]}"
    if name in ("require", "fetch", "document", "process", "module", "Promise"):
        return f"{_JAVASCRIPT_SAID}: {_IN_PYTHON}"
    return ""
