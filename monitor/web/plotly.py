"""The plotly.js that the page draws with, and the style sheets that it brings itself."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.util import find_spec
from pathlib import Path

from monitor.errors import UsageError

__all__ = ["plotly_js", "styles_of"]

_TEXT = re.compile(r"""\.textContent=(?:'([^'\\]*)'|"([^"\\]*)")""")


def plotly_js() -> Path:
    """The plotly.js of the installed plotly, which is not imported for it.

    Raises:
        UsageError: there is none.
    """
    spec = find_spec("plotly")
    path = Path(spec.origin or "").parent / "package_data" / "plotly.min.js" if spec else None
    if path is None or not path.is_file():
        raise UsageError("the page needs plotly: pip install 'speaker-disclosure-monitor[web]'")
    return path


def styles_of(script: str) -> list[str]:
    """Sources for ``style-src`` that allow the style elements of a script, and no others.

    Its rules for maps are one literal text; another element is empty and takes rules one by one.

    Examples:
        >>> styles_of("e.textContent='.a{top:0}'")[1]
        "'sha256-HKUUHr/zGJPt9XqxhVtl8Y2jTDRcFYbbXT8D5+vpwJE='"
    """
    texts = {"", *(one or other for one, other in _TEXT.findall(script) if "{" in one + other)}
    return [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in sorted(texts)
    ]
