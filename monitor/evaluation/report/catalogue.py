"""The catalogue of figures: short names, what each says, and which to look at first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from monitor.errors import UsageError
from monitor.evaluation.families import families, family_of
from monitor.evaluation.family import FigureEntry

__all__ = [
    "by_family",
    "chosen",
    "entries",
    "main_figures",
    "main_keys",
    "needs_ranks",
    "optional_entries",
    "short_name",
    "title_of",
]


def entries() -> tuple[FigureEntry, ...]:
    """Every figure that needs no option with numbers in its key, families together.

    Example:
        >>> entries()[0].name
        'meand'
    """
    return tuple(entry for family in families() if not family.option for entry in family.figures)


def optional_entries() -> tuple[tuple[str, FigureEntry], ...]:
    """Every other figure, and the option of ``monitor evaluate`` that asks for it.

    Example:
        >>> [(option, entry.name) for option, entry in optional_entries()][:2]
        [('--among M', 'among.supported'), ('--among M', 'among.idr_M')]
    """
    return tuple((family.option, entry) for family in families() if family.option
                 for entry in family.figures)  # fmt: skip


def main_figures() -> tuple[str, ...]:
    """Keys of the figures to look at first."""
    return tuple(key for family in families() if not family.option for key in family.main)


def by_family(keys: Iterable[str]) -> dict[str, list[str]]:
    """Keys by family, both in the order in which they come.

    Example:
        >>> by_family(["a.x", "b.y", "a.z"])
        {'a': ['a.x', 'a.z'], 'b': ['b.y']}
    """
    grouped: dict[str, list[str]] = {}
    for key in keys:
        grouped.setdefault(key.split(".")[0], []).append(key)
    return grouped


def title_of(family: str) -> str:
    """What a table calls a family; its key where it is not known."""
    found = family_of(family)
    return family if found is None else found.title


def main_keys(keys: Iterable[str]) -> list[str]:
    """Those to look at first, and those of what was asked for by an option.

    Example:
        >>> main_keys(["srd.spread", "among.idr_500", "among.idr_logit_500", "srd.idr"])
        ['srd.idr', 'among.idr_500']
    """
    have = list(keys)
    return [key for key in main_figures() if key in have] + [key for key in have if _asked(key)]


def _asked(key: str) -> bool:
    family = family_of(key)
    if family is None or not family.option:
        return False
    entry = family.entry(key)
    return entry is not None and entry.key in family.main


def short_name(key: str) -> str:
    """The short name of a figure; its key where it has none.

    Example:
        >>> short_name("verification.eer_rocch")
        'eer'
    """
    family = family_of(key)
    listed = () if family is None else family.figures
    return next((entry.name for entry in listed if entry.key == key), key)


def needs_ranks(key: str) -> bool:
    """Whether a figure wants trials that were compared with every speaker, not any comparisons.

    Example:
        >>> needs_ranks("linkage.pi_link_all"), needs_ranks("linkage.d_sys")
        (True, False)
    """
    family = family_of(key)
    return family is None or not family.pooled(key)


def chosen(names: Sequence[str], keys: Iterable[str] = ()) -> tuple[str, ...]:
    """The keys that names stand for, in the order of the names.

    Args:
        names: short names, keys, families (``"zebra"``) or ``"main"``; case does not matter.
        keys: known beside those of the catalogue.

    Raises:
        UsageError: a name is unknown; the message has those that look like it.

    Example:
        >>> chosen(["EER", "zebra"])[:2]
        ('verification.eer_rocch', 'zebra.d_ece_bits')
        >>> chosen(["dece"])
        Traceback (most recent call last):
        ...
        monitor.errors.UsageError: no figure 'dece': do you mean d_ece? --figures help has them all
    """
    known = dict.fromkeys((*(entry.key for entry in entries()), *keys))
    meant = {
        **{key: (key,) for key in known},
        **by_family(known),
        **{entry.name: (entry.key,) for entry in entries()},
        "main": main_figures(),
    }
    found: dict[str, None] = {}
    for name in names:
        if name.lower() not in meant:
            near = difflib.get_close_matches(name.lower(), list(meant), 4)
            ask = f"do you mean {' or '.join(near)}? " if near else ""
            raise UsageError(f"no figure {name!r}: {ask}--figures help has them all")
        found |= dict.fromkeys(meant[name.lower()])
    return tuple(found)
