"""The tools of the MCP server "odd" as code calls them: mcp_odd.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


def all_of(a: str, b: int | None = None) -> Any:
    raise NotImplementedError


def deep(
    a: list[list[list[list[list[list[list[list[list[list[list[list[list[Any]]]]]]]]]]]]] | None = None,
) -> Any:
    raise NotImplementedError


class ItselfInput_(TypedDict):
    n: int


class ItselfInput(ItselfInput_, total=False):
    child: ItselfInput


class ItselfNode_(TypedDict):
    # Its number.
    value: int


class ItselfNode(ItselfNode_, total=False):
    next: ItselfNode


def itself(n: int, child: ItselfInput | None = None) -> ItselfNode:
    raise NotImplementedError


def names(
    x_y: str,
    nowhere: Any,
    class_: str | None = None,
    a_b: str | None = None,
    a_b__2: str | None = None,
    _1st: str | None = None,
    _x: str | None = None,
    n_me: str | None = None,
    _: str | None = None,
    kwargs: str | None = None,
    self: str | None = None,
    print: str | None = None,
    None_: str | None = None,
    _2: str | None = None,
    _debug__: str | None = None,
    **kwargs__2: Any,
) -> Any:
    """Names that are none.

    Parameters:
        x_y ("x y"):
        class_ ("class"):
        a_b ("a-b"):
        a_b__2 ("a.b"):
        _1st ("1st"):
        _x ("__x"):
        n_me ("näme"):
        _ (""):
        None_ ("None"):
        _2 ("_"):
        _debug__ ("__debug__"):
    """
    raise NotImplementedError


def no_parameters() -> list[str]:
    raise NotImplementedError


def no_schema(**kwargs: Any) -> Any:
    raise NotImplementedError


class NotWrappedResult(TypedDict, total=False):
    result: int


def not_wrapped() -> NotWrappedResult:
    """A number."""
    raise NotImplementedError


def one_of(c: Literal[1, 2], a: str | None = None, b: str | None = None) -> Any:
    raise NotImplementedError


TypesP14_ = TypedDict(
    "TypesP14_",
    {
        "b-c": "str",
    },
)


class TypesP14(TypesP14_, total=False):
    a: Any


TypesP15 = TypedDict(
    "TypesP15",
    {
        "str": "str",
        "x": "str",
    },
    total=False,
)


class TypesP17(TypedDict, total=False):
    x: str


class TypesNode_(TypedDict):
    # Its number.
    value: int


class TypesNode(TypesNode_, total=False):
    next: TypesNode


class TypesP30_(TypedDict):
    # Its number.
    value: int
    more: str


class TypesP30(TypesP30_, total=False):
    next: TypesNode


def types(
    p0: str | None = None,
    p1: int | None = None,
    p2: float = 1,
    p3: bool = False,
    p4: None = None,
    p5: str | None = None,
    p6: str | None = None,
    p7: list[Any] | None = None,
    p8: list[list[bool]] | None = None,
    p9: list[str] | None = None,
    p10: list[Any] | None = None,
    p11: list[Any] | None = None,
    p12: dict[str, Any] | None = None,
    p13: dict[str, int] | None = None,
    p14: TypesP14 | None = None,
    p15: TypesP15 | None = None,
    p16: dict[str, Any] | None = None,
    p17: TypesP17 | None = None,
    p18: Literal["a", 1, True] | None = None,
    p19: float | list[Any] | dict[str, Any] | Literal["a"] | None = None,
    p20: str | None = None,
    p21: Literal["a", "b"] = "b",
    p22: Literal["a", "b"] | None = None,
    p23: Literal["x"] | None = None,
    p24: None = None,
    p25: str | int | None = None,
    p26: list[Literal[1]] | Literal["a"] | None = None,
    p27: Any = None,
    p28: str | None = None,
    p29: str | None = None,
    p30: TypesP30 | None = None,
    p31: TypesNode | None = None,
    p32: Any = None,
    p33: int | None = None,
    p34: str = "x",
    p35: Any = None,
    p36: Any = None,
    p37: Any = None,
    p38: Any = None,
    p39: Any = None,
    p40: Any = None,
    p41: Any = None,
    p42: Any = None,
    p43: Any = None,
    p44: Any = None,
    p45: Any = None,
    p46: int | None = None,
    p47: float = 2.5,
    p48: int | None = None,
    p49: str | None = None,
    p50: Any = "any",
    p51: int | str = "x",
) -> Any:
    """One parameter of each type.

    Parameters:
        p1: minimum 1, maximum 9223372036854775808
        p22: default "c"
        p29: minLength 1
        p34: minLength 1
        p46: default 2.5
        p48: default true
        p49: default ["x"]
    """
    raise NotImplementedError


TypesRequiredP14_ = TypedDict(
    "TypesRequiredP14_",
    {
        "b-c": "str",
    },
)


class TypesRequiredP14(TypesRequiredP14_, total=False):
    a: Any


class TypesRequiredNode_(TypedDict):
    # Its number.
    value: int


class TypesRequiredNode(TypesRequiredNode_, total=False):
    next: TypesRequiredNode


class TypesRequiredP30_(TypedDict):
    # Its number.
    value: int
    more: str


class TypesRequiredP30(TypesRequiredP30_, total=False):
    next: TypesRequiredNode


TypesRequiredP15 = TypedDict(
    "TypesRequiredP15",
    {
        "str": "str",
        "x": "str",
    },
    total=False,
)


class TypesRequiredP17(TypedDict, total=False):
    x: str


def types_required(
    p0: str,
    p2: float,
    p4: None,
    p6: str | None,
    p8: list[list[bool]],
    p10: list[Any],
    p12: dict[str, Any],
    p14: TypesRequiredP14,
    p16: dict[str, Any],
    p18: Literal["a", 1, True] | None,
    p20: str,
    p22: Literal["a", "b"],
    p24: None,
    p26: list[Literal[1]] | Literal["a"],
    p28: str | None,
    p30: TypesRequiredP30,
    p32: Any,
    p34: str,
    p36: Any,
    p38: Any,
    p40: Any,
    p42: Any,
    p44: Any,
    p46: int,
    p48: int,
    p50: Any,
    p1: int | None = None,
    p3: bool = False,
    p5: str | None = None,
    p7: list[Any] | None = None,
    p9: list[str] | None = None,
    p11: list[Any] | None = None,
    p13: dict[str, int] | None = None,
    p15: TypesRequiredP15 | None = None,
    p17: TypesRequiredP17 | None = None,
    p19: float | list[Any] | dict[str, Any] | Literal["a"] | None = None,
    p21: Literal["a", "b"] = "b",
    p23: Literal["x"] | None = None,
    p25: str | int | None = None,
    p27: Any = None,
    p29: str | None = None,
    p31: TypesRequiredNode | None = None,
    p33: int | None = None,
    p35: Any = None,
    p37: Any = None,
    p39: Any = None,
    p41: Any = None,
    p43: Any = None,
    p45: Any = None,
    p47: float = 2.5,
    p49: str | None = None,
    p51: int | str = "x",
) -> Any:
    """Parameters:
        p34: minLength 1
        p1: minimum 1, maximum 9223372036854775808
        p29: minLength 1
        p49: default ["x"]
    """
    raise NotImplementedError


class WrappedIssue(TypedDict):
    title: str


def wrapped(**kwargs: Any) -> list[WrappedIssue]:
    """Issues."""
    raise NotImplementedError


def wrapped_unmarked() -> int | None:
    """A number or nothing."""
    raise NotImplementedError
