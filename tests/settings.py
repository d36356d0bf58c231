"""Settings of a command, which only ``--config FILE`` has, given among its arguments."""

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile


def configured(arguments: Iterable[object], folder: Path) -> list[str]:
    """Arguments as text, the command first; mappings become a file of settings in the folder."""
    words, lines = list[str](), list[str]()
    for each in arguments:
        if isinstance(each, dict):
            lines += [f"{name} = {json.dumps(it, default=str)}\n" for name, it in each.items()]
        else:
            words.append(str(each))
    if not lines:
        return words
    with NamedTemporaryFile("w", suffix=".toml", dir=folder, delete=False) as file:
        file.write(f"[{words[0]}]\n{''.join(lines)}")
    return ["--config", file.name, *words]
