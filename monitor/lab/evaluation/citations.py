"""BibTeX entries of the papers that define the metrics, one per line."""

from __future__ import annotations

from pathlib import Path

from monitor.lab.evaluation.family import families
from monitor.version import __version__

_CITED = {
    "srd": ("backstrom2025srd",),
    "lid": ("sterns2026lid",),
    "longitudinal": ("sterns2026lid",),
    "zebra": ("nautsch2020zebra",),
    "verification": ("tomashenko2024voiceprivacy", "brummer2006cllr"),
    "linkage": ("gomez2018unlinkability", "vauquier2025legal"),
    "anonymity": ("turavecino2025usc",),
    "among": ("disclosuremonitor",),
    "membership": ("tsaprazlis2025voxguard",),
    "accounting": ("kairouz2015composition",),
}
"""Keys of the entries in citations.bib, by family. Extrapolation to a crowd is ours."""
_OURS = (
    "@software{disclosuremonitor, author={{The disclosure monitor's developers}}, "
    f"title={{Disclosure monitor}}, version={{{__version__}}}, year={{2026}}}}"
)


def format_bibtex() -> str:
    """Format one entry per line, below the titles of its families and names of their figures."""
    papers = Path(__file__).with_suffix(".bib").read_text("utf-8").splitlines()
    entries = {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in (*papers, _OURS)}
    heads: dict[tuple[str, ...], list[str]] = {}
    for family in families():
        names = ", ".join(figure.name for figure in family.figures)
        heads.setdefault(_CITED[family.key], []).append(f"% {family.title}: {names}")
    lines = [line for keys, titles in heads.items()
             for line in (*titles, *(entries[key] for key in keys))]  # fmt: skip
    return "\n".join(lines) + "\n"
