"""The blocks of code on the pages of the documentation."""

import re

__all__ = ["fenced"]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def fenced(text: str, language: str) -> list[str]:
    """What stands in the blocks of one language."""
    return [code for name, code in _BLOCK.findall(text) if name == language]
