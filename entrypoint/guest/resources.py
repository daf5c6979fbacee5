"""Resources and prompts of a server: `mcp_x.resources` and `mcp_x.prompts`."""

from __future__ import annotations

from guest import content
from guest.awaitable import ReadyDict, ReadyList
from guest.light_typing import Any
from guest.link import Link


class Resources:
    """What a server offers to be read: .list(), .templates() and .read(uri)."""

    def __init__(self, link: Link, server: str) -> None:
        self._link, self._server = link, server

    def _ask(self, helper: str, **given: Any) -> Any:
        from guest.servers import ask

        made = content.contents if helper == "read_resource" else ReadyList
        return ask(self._link, helper, {"server": self._server, **given}, made, self._server).now()

    def list(self) -> Any:
        """The resources: dicts with uri, name and what else the server says, such as mimeType."""
        return self._ask("list_resources")

    def templates(self) -> Any:
        """The templates of resources: dicts with uriTemplate, name and more."""
        return self._ask("list_resource_templates")

    def read(self, uri: str) -> Any:
        """A resource: a str or bytes, each with .mime and .uri; several are a list."""
        return self._ask("read_resource", uri=str(uri))

    def complete(self, template: str, argument: str, value: str = "", /, **known: str) -> Any:
        """What the server proposes for a parameter of a template, of which value is the beginning;
        known are others: a list of texts.
        """
        return _completions(self._link, self._server, {"uri": template}, argument, value, known)

    def __repr__(self) -> str:
        return f"<resources of server {self._server!r}: list(), templates(), read(uri)>"


class Prompts:
    """The prompts of a server: .list() and .get(name, argument=value)."""

    def __init__(self, link: Link, server: str) -> None:
        self._link, self._server = link, server

    def list(self) -> Any:
        """The prompts: dicts with name, description and arguments."""
        from guest.servers import ask

        return ask(self._link, "list_prompts", {"server": self._server}, ReadyList, self._server).now()

    def get(self, name: str, /, **arguments: str) -> Any:
        """A prompt filled in: a dict with messages, each with a role and a content."""
        from guest.servers import ask

        given = {
            "server": self._server,
            "name": name,
            "arguments": {key: str(value) for key, value in arguments.items()},
        }
        return ask(self._link, "get_prompt", given, ReadyDict, self._server).now()

    def complete(self, name: str, argument: str, value: str = "", /, **known: str) -> Any:
        """What the server proposes for an argument of a prompt, of which value is the beginning;
        known are others: a list of texts.
        """
        return _completions(self._link, self._server, {"name": name}, argument, value, known)

    def __repr__(self) -> str:
        return f"<prompts of server {self._server!r}: list(), get(name, argument=value)>"


def _completions(
    link: Link, server: str, of: dict[str, str], argument: str, value: str, known: dict[str, str]
) -> Any:
    from guest.servers import ask

    given = {
        **of,
        "server": server,
        "argument": argument,
        "value": value,
        "arguments": {key: str(v) for key, v in known.items()},
    }
    return ask(
        link, "complete", given, lambda answer: ReadyList(answer["completion"]["values"]), server
    ).now()
