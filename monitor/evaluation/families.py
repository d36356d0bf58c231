"""All families of metrics: every folder beside this file that has a module ``family``."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from monitor import evaluation
from monitor.evaluation.family import Family, FigureEntry, LimitRule

__all__ = ["entry_of", "families", "family_of", "rule_of"]


def families() -> tuple[Family, ...]:
    """Every family, in the order of reports.

    Example:
        >>> [family.key for family in families()][:3]
        ['srd', 'lid', 'longitudinal']
    """
    return _found(tuple(evaluation.__path__))


@cache
def _found(path: tuple[str, ...]) -> tuple[Family, ...]:
    homes = [f"{evaluation.__name__}.{each.name}" for each in pkgutil.iter_modules(path)
             if each.ispkg]  # fmt: skip
    made = [import_module(f"{home}.family").FAMILY for home in homes if find_spec(f"{home}.family")]
    return tuple(sorted(made, key=lambda family: family.place))


def family_of(key: str) -> Family | None:
    """The family of a figure's key, or of its own; None where there is none.

    Example:
        >>> family_of("zebra.tag").title
        'Expected and worst case (ZEBRA)'
    """
    stem = key.split(".")[0]
    return next((family for family in families() if family.key == stem), None)


def entry_of(key: str) -> FigureEntry | None:
    """What is declared of a figure; None where nothing is.

    Example:
        >>> entry_of("linkage.pi_link_all").name
        'pi_link'
    """
    family = family_of(key)
    return None if family is None else family.entry(key)


def rule_of(key: str) -> LimitRule | None:
    """The rule for the limits of a figure; None where none was made.

    Example:
        >>> rule_of("lid.repo.pdr").how, rule_of("membership.tpr_at_1e-3").how
        ('share', 'share')
    """
    entry = entry_of(key)
    return None if entry is None else entry.limits
