"""Lets the reference show the examples of docstrings as code.

Griffe knows the section ``Examples:``; ours are mostly one, and called ``Example:``. What stands
below ``Example::`` is code that needs something which is not there. Examples between paragraphs, as
those of the package itself, become code of their own.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ONE = re.compile(r"^Example:$", re.MULTILINE)
_CODE = re.compile(r"^Example::\n((?:\n|[ ]+.*\n?)+)", re.MULTILINE)
_BETWEEN = re.compile(r"^>>> .+(?:\n.+)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Rewrites examples before a docstring is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and value."""
        if obj.is_function and obj.name.startswith("__") and obj.name != "__init__":
            obj.docstring = None  # Python calls it: what says nothing is not shown
        if obj.docstring is None:
            return
        text = _ONE.sub("Examples:", obj.docstring.value)
        text = _BETWEEN.sub("```pycon\\n\\g<0>\\n```", text)
        obj.docstring.value = _CODE.sub(_fenced, text)


def _fenced(match: re.Match[str]) -> str:
    code = match[1].strip("\n")
    return f"Examples:\n    ```python\n{code}\n    ```\n"
