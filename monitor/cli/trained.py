"""The option --trained: on whose speech the network of a feature was trained."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click

__all__ = ["trained_by_feature", "trained_option"]

trained_option = click.option(
    "--trained",
    "trainers",
    multiple=True,
    metavar="FEATURE=FILE",
    help="A list of names, one a line: those on whose speech the network of a feature was trained, "
    "such as your --speaker-model. It knows their voices better than others', so that no test of "
    "theirs counts for it.",
)


def trained_by_feature(given: Sequence[str], speakers: Collection[str]) -> dict[str, set[str]]:
    """Names by feature, from FEATURE=FILE.

    Raises:
        UsageError: it is not of that form, there is no such list, or nobody on it is a speaker of
            the corpus: it would leave nobody out, and comfort falsely.
    """
    from monitor.errors import UsageError
    from monitor.features.registry import FEATURES, MODEL

    found: dict[str, set[str]] = {}
    for text in given:
        name, _, path = text.partition("=")
        if not (name and path):
            raise UsageError(f"--trained {text!r} must be FEATURE=FILE, a list of names")
        if name == "speaker":
            name = next((each for each in FEATURES if each.startswith(MODEL)), name)
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise UsageError(f"--trained {path}: cannot be read ({reason})") from None
        names = {line.strip() for line in lines}
        if not names.intersection(speakers):
            raise UsageError(
                f"--trained {path}: nobody on the list is a speaker of the corpus; check the "
                "names, or leave it out"
            )
        found.setdefault(name, set()).update(names)
    return found
