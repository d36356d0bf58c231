"""Lets the reference show the examples of docstrings as code, and attributes one by one.

Griffe knows the section ``Examples:``; ours are mostly one, and called ``Example:``. What stands
below ``Example::`` is code that needs something which is not there. Examples between paragraphs, as
those of the package itself, become code of their own. ``low, high: the limits`` in a list of
arguments or attributes is two of them; Griffe takes the second name for the type of the first.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ONE = re.compile(r"^Example:$", re.MULTILINE)
_CODE = re.compile(r"^Example::\n((?:\n|[ ]+.*\n?)+)", re.MULTILINE)
_TOGETHER = re.compile(r"^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +.*)*)", re.MULTILINE)
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
        text = _TOGETHER.sub(_one_by_one, text)
        obj.docstring.value = _CODE.sub(_fenced, text)


def _fenced(match: re.Match[str]) -> str:
    code = match[1].strip("\n")
    return f"Examples:\n    ```python\n{code}\n    ```\n"


def _one_by_one(match: re.Match[str]) -> str:
    indent, names, text = match.groups()
    return "\n".join(f"{indent}{name}: {text}" for name in names.split(", "))
