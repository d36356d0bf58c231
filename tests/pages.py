"""The pages of the documentation, with and without their blocks of code."""

from __future__ import annotations

import re

__all__ = ["fenced", "unfenced"]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def unfenced(text: str) -> str:
    """A page without its blocks of code."""
    return _BLOCK.sub("", text)


def fenced(text: str, language: str) -> list[str]:
    """What stands in the blocks of one language."""
    return [code for name, code in _BLOCK.findall(text) if name == language]
