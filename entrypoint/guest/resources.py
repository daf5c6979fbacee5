"""Resources and prompts of a server: `mcp_x.resources` and `mcp_x.prompts`."""

from __future__ import annotations

from collections.abc import Callable

from guest import content
from guest.results import ReadyDict, ReadyList
from guest.light_typing import Any
from guest.link import Link


class Offers:
    """What resources and prompts have in common."""

    def __init_subclass__(cls) -> None:
        for name, method in vars(cls).items():
            if not name.startswith("_"):
                method.__qualname__ = f"{cls.__name__.lower()}.{name}"  # which a TypeError names

    def __init__(self, link: Link, server: str) -> None:
        self._link, self._server = link, server

    def _ask(self, helper: str, made: Callable[[Any], Any], **given: Any) -> Any:
        from guest.servers import ask

        return ask(self._link, helper, {"server": self._server, **given}, made, self._server).now()

    def _complete(self, argument: str, value: str, known: dict[str, str], **of: str) -> Any:
        given = {"argument": argument, "value": value, "arguments": {key: str(v) for key, v in known.items()}}
        return self._ask("complete", lambda answer: ReadyList(answer["completion"]["values"]), **of, **given)


class Resources(Offers):
    """What a server offers to be read: .list(), .templates() and .read(uri)."""

    def list(self) -> Any:
        """The resources: dicts with uri, name and what else the server says, such as mimeType."""
        return self._ask("list_resources", ReadyList)

    def templates(self) -> Any:
        """The templates of resources: dicts with uriTemplate, name and more."""
        return self._ask("list_resource_templates", ReadyList)

    def read(self, uri: str) -> Any:
        """A resource: a str or bytes, each with .mime and .uri; several are a list."""
        return self._ask("read_resource", content.contents, uri=str(uri))

    def complete(self, template: str, argument: str, value: str = "", /, **known: str) -> Any:
        """A list of what the server proposes for a parameter of a template that begins with value.

        known are values of other parameters.
        """
        return self._complete(argument, value, known, uri=template)

    def __repr__(self) -> str:
        return f"<resources of server {self._server!r}: list(), templates(), read(uri)>"


class Prompts(Offers):
    """The prompts of a server: .list() and .get(name, argument=value)."""

    def list(self) -> Any:
        """The prompts: dicts with name, description and arguments."""
        return self._ask("list_prompts", ReadyList)

    def get(self, name: str, /, **arguments: str) -> Any:
        """A prompt filled in: a dict with messages, each with a role and a content."""
        given = {key: str(value) for key, value in arguments.items()}
        return self._ask("get_prompt", ReadyDict, name=name, arguments=given)

    def complete(self, name: str, argument: str, value: str = "", /, **known: str) -> Any:
        """A list of what the server proposes for an argument of a prompt that begins with value.

        known are values of other arguments.
        """
        return self._complete(argument, value, known, name=name)

    def __repr__(self) -> str:
        return f"<prompts of server {self._server!r}: list(), get(name, argument=value)>"
