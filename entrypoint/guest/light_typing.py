"""Those names of typing that annotations need.

To import typing itself takes as long as a fifth of the guest's start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
    from typing import NoReturn as NoReturn
    from typing import TextIO as TextIO
else:
    Any = NoReturn = TextIO = object
