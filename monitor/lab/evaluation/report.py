"""The report on one system: its figures, their catalogue and their wording."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import Usage
from monitor.lab.evaluation.curves import CrowdRates, Curves, Line
from monitor.lab.evaluation.family import FigureEntry, families, family_of
from monitor.lab.report.model import Figure, format_limits
from monitor.lab.report.renderers import curve_json, figure_json
from monitor.phrases import plural
from monitor.tables import Column, data_frame
from monitor.types import Record

if TYPE_CHECKING:
    import pandas


def entries() -> tuple[FigureEntry, ...]:
    """List the figures of all families without an option, family by family."""
    return tuple(entry for family in families() if not family.option for entry in family.figures)


def list_catalogue() -> list[tuple[str, str]]:
    """List every figure with its description, those that need an option last."""
    optional = [
        (entry.name, f"with {family.option}: {entry.says}")
        for family in families()
        if family.option
        for entry in family.figures
    ]
    return [(entry.name, entry.says) for entry in entries()] + optional


def main_figures() -> tuple[str, ...]:
    """List the keys of the main figures."""
    return tuple(key for family in families() if not family.option for key in family.main)


def by_family(keys: Iterable[str]) -> dict[str, list[str]]:
    """Group keys by family, in the given order."""
    grouped: dict[str, list[str]] = {}
    for key in keys:
        grouped.setdefault(key.split(".")[0], []).append(key)
    return grouped


def title_of(key: str) -> str:
    """Return the title of a figure's family; the key if the family is unknown."""
    declared = family_of(key)
    return key if declared is None else declared.title


def main_keys(keys: Iterable[str]) -> list[str]:
    """Select the keys of main figures, including those that an option requests.

    Example:
        >>> main_keys(["srd.spread", "among.idr_500", "among.idr_logit_500", "srd.idr"])
        ['srd.idr', 'among.idr_500']
    """
    have = list(keys)
    requested = [
        key
        for key in have
        if (family := family_of(key)) and family.option
        if (entry := family.entry(key)) and entry.key in family.main
    ]
    return [key for key in main_figures() if key in have] + requested


def short_name(key: str) -> str:
    """Return the short name of a figure; its key if it has none."""
    family = family_of(key)
    listed = () if family is None else family.figures
    return next((entry.name for entry in listed if entry.key == key), key)


_FORMER_NAMES = {"eer_nearest": "verification.eer_nearest"}
"""Short names that figures had before, with their keys."""


def choose_figures(names: Sequence[str], keys: Iterable[str] = ()) -> tuple[str, ...]:
    """Find the keys that names stand for, in the order of the names.

    Names are short names, keys (those given, or of the catalogue), families (``"zebra"``) or
    ``"main"``; case does not matter. Raises UsageError if a name is unknown; the message lists
    similar names.

    Example:
        >>> choose_figures(["EER", "zebra"])[:2]
        ('verification.eer_nearest', 'zebra.d_ece_bits')
        >>> choose_figures(["dece"])
        Traceback (most recent call last):
        ...
        monitor.errors.UsageError: unknown figure 'dece': did you mean d_ece? see --figures help
    """
    all_keys = dict.fromkeys((*(entry.key for entry in entries()), *keys))
    meant = {
        **{key: (key,) for key in all_keys},
        **by_family(all_keys),
        **{entry.name: (entry.key,) for entry in entries()},
        **{name: (key,) for name, key in _FORMER_NAMES.items()},
        "main": main_figures(),
    }
    selected: dict[str, None] = {}
    for name in names:
        if name.lower() not in meant:
            near = difflib.get_close_matches(name.lower(), list(meant), 4)
            ask = f"did you mean {' or '.join(near)}? " if near else ""
            raise UsageError(f"unknown figure {name!r}: {ask}see --figures help")
        selected |= dict.fromkeys(meant[name.lower()])
    return tuple(selected)


_COLUMNS = (
    *(Column(name, "text") for name in ("key", "name", "label")),
    *(Column(name, "number") for name in ("value", "low", "high")),
    *(Column(name, "text") for name in ("unit", "text")),
    *(Column(name, "number") for name in ("ceiling", "floor")),
    *(Column(name, "integer") for name in ("speakers", "trials")),
    *(Column(name, "text") for name in ("ties", "note")),
)


@dataclass(frozen=True, repr=False)
class Report:
    """All figures of one system, as in ``report["eer"]``, by short name or by key.

    Attributes:
        name: name of the system.
        speakers: number N of enrolled speakers.
        trials: number of trials.
        tested: sorted names of the speakers with trials.
        replicates, seed: number and seed of the resamples of speakers for intervals; 0 without
            resampling.
        notes: unexpected choices, one sentence each.
        figures: figures by key, grouped by family.
        curves: curves of the plots.
        warnings: reasons to doubt all figures, one sentence each, shown first.
        usage: numbers of comparisons, and of trials with ranks.
        named_trials: speaker and name of each trial with a rank, if trials have names.
        about: family of figures of each note, if any.
    """

    name: str
    speakers: int
    trials: int
    tested: tuple[str, ...]
    replicates: int
    seed: int
    notes: tuple[str, ...]
    figures: Mapping[str, Figure]
    curves: Curves
    warnings: tuple[str, ...] = ()
    usage: Usage | None = None
    named_trials: frozenset[tuple[str, str]] = frozenset()
    about: Mapping[str, str] = field(default_factory=dict)

    def notes_on(self, keys: Iterable[str]) -> list[str]:
        """Return the notes on one of these figures, or on all figures."""
        families = {"", *by_family(keys)}
        return [note for note in self.notes if self.about.get(note, "") in families]

    @property
    def ceiling_bits(self) -> float:
        """``log2 N``."""
        return float(np.log2(self.speakers))

    def __getitem__(self, name: str) -> Figure:
        """Return a figure by its key, or by its short name as ``--figures`` takes it.

        Raises:
            KeyError: no figure has this name. The message has similar names.
        """
        keys = self.figures
        names = {short_name(key).lower(): key for key in keys}
        names |= {old: key for old, key in _FORMER_NAMES.items() if key in keys}
        names |= {key.lower(): key for key in keys}
        if str(name).lower() in names:
            return self.figures[names[str(name).lower()]]
        near = difflib.get_close_matches(str(name).lower(), names, 4)
        alternatives = " or ".join(near or [*dict.fromkeys(map(short_name, main_keys(keys)))])
        raise KeyError(f"no figure {name!r}: use {alternatives}. report.figures has all keys")

    def __getattr__(self, name: str) -> Any:
        """Return a figure by its short name, or those of a family: ``report.srd.idr.value``."""
        figures = vars(self).get("figures", {})
        keys = by_family(figures).get(name)
        if keys is not None:
            return SimpleNamespace(**{key.partition(".")[2]: figures[key] for key in keys})
        if figures and not name.startswith("_"):
            try:
                return self[name]
            except KeyError as error:
                raise AttributeError(error.args[0]) from None
        raise AttributeError(f"a report has no {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *by_family(self.figures)]

    def __repr__(self) -> str:
        return f"<Report {self.name}: {', '.join(fact_list(self))}, {len(self.figures)} figures>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{title}</th>" for title in ("figure", "value", "95 % interval", "key"))
        rows = "".join(
            f"<tr><td>{escape(figure.label)}</td>"
            f"<td>{escape(f'{figure.shown} {figure.shown_unit}'.strip())}</td>"
            f"<td>{escape(format_limits(figure))}</td><td>{escape(key)}</td></tr>"
            for key, figure in self.figures.items()
        )
        facts = ", ".join(fact_list(self))
        return (
            f"<table><caption>{escape(f'{self.name}: {facts}')}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Make a data frame, one row per figure, indexed by key. Needs the extra 'tables'."""
        rows = (
            {
                "key": key,
                "name": short_name(key),
                **{column.name: getattr(figure, column.name, None) for column in _COLUMNS[2:]},
                "speakers": self.speakers,
                "trials": self.trials_of(key),
            }
            for key, figure in self.figures.items()
        )
        return data_frame(_COLUMNS, rows).set_index("key")

    def trials_of(self, key: str) -> int:
        """Count the trials behind a figure."""
        family = family_of(key)
        if self.usage is None or (family is not None and family.pooled(key)):
            return self.trials
        return self.usage.ranked_trials

    def to_json(self, shown: Collection[str] | None = None) -> Record:
        """Return all content except replicates, for ``json.dumps(..., allow_nan=False)``.

        ``shown`` has the keys of selected figures; None for all.
        """
        curves = {"non_mated": self.curves.non_mated, **self.curves.drawn()}
        return {
            "schema": 1,
            "name": self.name,
            "speakers": self.speakers,
            "trials": self.trials,
            "comparisons": None if self.usage is None else asdict(self.usage),
            "tested_speakers": len(self.tested),
            "ceiling_bits": self.ceiling_bits,
            "draws": self.replicates,
            "seed": self.seed,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "figures": {
                key: {
                    "name": short_name(key),
                    **figure_json(figure),
                    "speakers": self.speakers,
                    "trials": self.trials_of(key),
                }
                for key, figure in self.figures.items()
                if shown is None or key in shown
            },
            "curves": _encode({name: curve for name, curve in curves.items() if curve is not None}),
        }


def _encode(value: object) -> object:
    if isinstance(value, Line | CrowdRates):
        value = {key: member for key, member in vars(value).items() if member is not None}
    if isinstance(value, Mapping):
        return {key: _encode(member) for key, member in value.items()}
    return curve_json(value) if isinstance(value, np.ndarray) else value


def fact_list(report: Report) -> tuple[str, ...]:
    """Describe what was evaluated.

    Example:
        >>> from types import SimpleNamespace as Made
        >>> made = Made(trials=1, tested="a", speakers=4, ceiling_bits=2, replicates=0, usage=None)
        >>> fact_list(made)
        ('1 trial of 1 speaker', 'N = 4', 'ceiling 2.00 bits', 'no intervals')
    """
    lone = 0 if report.usage is None else report.usage.impostor_trials
    trials = f"{plural(report.trials - lone, 'trial')} of {plural(len(report.tested), 'speaker')}"
    return (
        trials + (f" and {lone:,} without a target" if lone else ""),
        f"N = {report.speakers:,}",
        f"ceiling {report.ceiling_bits:.2f} bits",
        plural(report.replicates, "resample") if report.replicates else "no intervals",
    )


def tie_rules(figures: Sequence[Figure]) -> str:
    """Describe how these figures treat equal scores, in one sentence; empty if ties do not matter.

    Example:
        >>> tie_rules([Figure("a.b", "B", 1.0, "", ties="mid"), Figure("a.c", "C", 1.0, "")])
        'Equal scores: mid (B).'
        >>> tie_rules([Figure("a.b", "B", 1.0, "", ties="mid")])
        'Equal scores: mid.'
    """
    rules: dict[str, list[str]] = {}
    for figure in figures:
        if figure.ties:
            rules.setdefault(figure.ties, []).append(figure.label)
    if not rules:
        return ""
    if len(rules) == 1 and all(figure.ties for figure in figures):
        return f"Equal scores: {next(iter(rules))}."
    main_rule = max(rules, key=lambda rule: len(rules[rule]))
    parts = [
        f"{rule} ({'; '.join(labels)})"
        if rule != main_rule or len(rules) == 1
        else f"{rule} otherwise"
        for rule, labels in sorted(rules.items(), key=lambda item: item[0] == main_rule)
    ]
    return f"Equal scores: {', '.join(parts)}."


def meaning(report: Report) -> tuple[str, ...]:
    """Explain the report to readers who know none of the metrics, in paragraphs."""
    return tuple(
        paragraph
        for family in families()
        if family.meaning is not None
        for paragraph in family.meaning(report.figures, report.speakers)
    )
