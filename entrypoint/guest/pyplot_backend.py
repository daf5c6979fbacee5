"""A backend of matplotlib that draws as Agg does; its show() hands the open figures over."""

from __future__ import annotations

import builtins

from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas  # type: ignore[import-not-found]

from guest.light_typing import Any

__all__ = ["FigureCanvas", "show"]


def show(*args: Any, **kwargs: Any) -> None:
    """Shows all open figures and closes them."""
    builtins.display.__self__.finish()  # type: ignore[attr-defined]
