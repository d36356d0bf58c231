"""monitor evaluate: every metric of the papers on one score matrix, or on several side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.options import (
    MOST_REPLICATES,
    CrowdSizes,
    FiniteRange,
    Names,
    TextFile,
    WithTextFiles,
    argument,
    check_new,
    check_output,
    group,
    made_console,
    option,
    say,
    with_options,
)
from monitor.errors import UsageError
from monitor.phrases import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from monitor.lab.evaluation.comparisons import Roles
    from monitor.lab.evaluation.input.embeddings import VoicePrivacyEntry, VoicePrivacyResults
    from monitor.lab.evaluation.input.labels import Attribute
    from monitor.lab.evaluation.input.scores import EvaluationInput, ScoreFile
    from monitor.lab.evaluation.report.comparing import Comparison, Grouped, Pair, Row
    from monitor.lab.evaluation.report.report import Report
    from monitor.lab.evaluation.validation import Validation, ValidationStatement
    from monitor.lab.report.model import Figure

# --- The files of an evaluation, brought together system by system.

MOST_SYSTEMS = 12
"""That one score file puts side by side."""


@dataclass(frozen=True, slots=True)
class NamedScores:
    """The scores of one system."""

    file: Path
    name: str
    choose: tuple[str, ...] = ()
    folder: VoicePrivacyResults | None = None
    entry: VoicePrivacyEntry | None = None


def list_systems(
    files: Sequence[Path], choose: Sequence[str] | None, data: Path | None = None
) -> list[NamedScores]:
    """List the systems in SCORES: one a file, or those chosen of a score file or a folder."""
    from monitor.lab.evaluation.input.embeddings import VoicePrivacyEntry, VoicePrivacyResults

    systems: list[NamedScores] = []
    any_file = False
    if data is not None and not any(file.is_dir() for file in files):
        raise UsageError("--data goes with folders of VoicePrivacy's results as SCORES")
    for file, name in zip(files, _distinguish(files), strict=True):
        source = VoicePrivacyResults.at(file, data) if file.is_dir() else _score_file(file)
        if source is None:
            systems.append(NamedScores(file, name))
            continue
        any_file = True
        entries = source.choose(choose or ())
        folder = source if isinstance(source, VoicePrivacyResults) else None
        if len(entries) > MOST_SYSTEMS:
            raise UsageError(
                f"{file.name} has {len(entries)} matrices, more than {MOST_SYSTEMS} side by side: "
                f"--choose some of {source.describe_choices()}"
            )
        words = [entry.words for entry in entries]
        varied = [
            i
            for i in range(len(words[0]))
            if len({entry_words[i] for entry_words in words} - {""}) > 1
        ]
        for entry_words, entry in zip(words, entries, strict=True):
            varied_words = [entry_words[i] for i in varied if entry_words[i]]
            system_name = " ".join([name] * (len(files) > 1 or not varied_words) + varied_words)
            if isinstance(entry, VoicePrivacyEntry):
                systems.append(NamedScores(file, system_name, (), folder, entry))
            else:
                systems.append(NamedScores(file, system_name, entry_words))
    if choose is not None and not any_file:
        raise UsageError("--choose goes with SCORES from monitor score, or VoicePrivacy's folders")
    return systems


def groups_within(files: Sequence[Path], name: str) -> Attribute:
    """Find the attribute of that name that score files hold."""
    from dataclasses import replace

    attribute: Attribute | None = None
    for score_file in filter(None, map(_score_file, files)):
        if score_file.groups is None or score_file.groups.name.lower() != name.lower():
            has = (
                f"has {score_file.groups.name}"
                if score_file.groups is not None
                else "has no groups"
            )
            raise UsageError(f"--group-by {name}: {score_file.path.name} {has}; give --groups FILE")
        if attribute is not None and any(
            attribute.of.get(k, v) != v for k, v in score_file.groups.of.items()
        ):
            raise UsageError(
                f"--group-by {name}: {score_file.path.name} says otherwise than another file"
            )
        attribute = (
            score_file.groups
            if attribute is None
            else replace(attribute, of={**attribute.of, **score_file.groups.of})
        )
    if attribute is None:
        raise UsageError("--group-by goes with --groups, or with SCORES from monitor score")
    return attribute


def _score_file(file: Path) -> ScoreFile | None:
    """Open a file of `monitor score`, None where it is another."""
    from monitor.lab.evaluation.input.files import kind_of
    from monitor.lab.evaluation.input.scores import ScoreFile

    if not file.is_file() or not file.stat().st_size:
        return None
    return ScoreFile.at(file) if kind_of(file) == "npz" else None


def _roles_of(named: NamedScores | None) -> Roles | None:
    """Return what VoicePrivacy's scenarios say was anonymised: enrolment, then trials."""
    from monitor.lab.evaluation.comparisons import Roles

    if named is None or named.entry is None:
        return None
    voice = {"o": "original", "a": "anonymised"}
    scenario = named.entry.scenario
    return Roles(query=voice[scenario[1]], reference=voice[scenario[0]])


def systems_of(
    options: EvaluateOptions, scores: Sequence[NamedScores]
) -> list[Callable[[], EvaluationInput]]:
    """Prepare the reading of each system, one after the other."""
    from monitor.lab.evaluation.input.embeddings import read_embeddings
    from monitor.lab.evaluation.input.scores import read_scores

    if bool(scores) == bool(options.trials):
        raise UsageError("give SCORES, or embeddings with --trials and --enrolment")
    names = tuple(name for group in options.names for name in group)
    files = [system.file for system in scores] or options.trials
    if names and len(names) != len(files):
        raise UsageError(f"--names: {len(names)} names for {plural(len(files), 'system')}")
    called = names or tuple(system.name for system in scores) or _distinguish(files)
    if len(set(called)) != len(called):
        raise UsageError("two systems have one name: give each its own with --names")
    if options.trials:
        if options.labels:
            raise UsageError("--labels goes with SCORES: embeddings come with their speakers")
        if options.enrolment_labels:
            raise UsageError("--enrolment-labels goes with SCORES: embeddings have speakers")
        if not options.enrolment:
            raise UsageError("--trials needs --enrolment: the speakers to compare with")
        enrolments = _for_each("--enrolment", options.enrolment, len(files))
        return [
            partial(
                read_embeddings, file, other, options.scoring, name=name, unmated=options.unmated
            )
            for file, other, name in zip(files, enrolments, called, strict=True)
            if other is not None
        ]
    if options.enrolment:
        raise UsageError("--enrolment goes with --trials")
    if any(system.folder for system in scores) and (options.labels or options.enrolment_labels):
        raise UsageError("VoicePrivacy's folders have their lists (--data): leave out the labels")
    labels = _for_each("--labels", options.labels, len(files))
    models = _for_each("--enrolment-labels", options.enrolment_labels, len(files))
    return [
        partial(system.folder.read, system.entry, name, unmated=options.unmated,
                clear=options.clear_results)
        if system.folder and system.entry
        else partial(
            read_scores, system.file, label, name=name, unmated=options.unmated,
            enrolment_labels=model, scoring=options.scoring, choose=system.choose,
        )
        for system, label, model, name in zip(scores, labels, models, called, strict=True)
    ]  # fmt: skip


def dev_of(
    options: EvaluateOptions, systems: Sequence[tuple[str, ...]]
) -> list[Callable[[], EvaluationInput] | None]:
    """Prepare the reading of each system's development scores, by what it was chosen by itself."""
    from monitor.lab.evaluation.input.scores import read_scores

    if options.dev_labels and not options.dev:
        raise UsageError("--dev-labels goes with --dev")
    files = _for_each("--dev", options.dev, len(systems))
    label_files = _for_each("--dev-labels", options.dev_labels, len(systems))
    return [
        None if file is None else partial(read_scores, file, other, choose=choose)
        for file, other, choose in zip(files, label_files, systems, strict=True)
    ]


def _prepare(
    options: EvaluateOptions, named: Sequence[NamedScores]
) -> list[tuple[Callable[[], EvaluationInput], Callable[[], EvaluationInput] | None]]:
    """Prepare the reading of each system and of its development scores."""
    systems = systems_of(options, named)
    choices = [scores.choose for scores in named] or [()] * len(systems)
    return list(zip(systems, dev_of(options, choices), strict=True))


def _groups_of(options: EvaluateOptions) -> Attribute | None:
    from monitor.lab.evaluation.input.labels import read_attribute

    if options.groups is not None:
        return read_attribute(options.groups, options.group_by)
    return None if options.group_by is None else groups_within(options.scores, options.group_by)


def _input_files(options: EvaluateOptions) -> dict[Path, None]:
    return dict.fromkeys((
        *options.scores, *options.labels, *options.trials, *options.enrolment,
        *options.enrolment_labels, *options.dev, *options.dev_labels,
        *filter(None, (options.groups,)), *options.forensic.conditions,
    ))  # fmt: skip


def _for_each(option: str, files: Sequence[Path], count: int) -> Sequence[Path | None]:
    if len(files) not in (0, 1, count):
        raise UsageError(f"{option}: give it once, or once for each of {count} systems")
    return list(files) * count if len(files) == 1 else list(files) or [None] * count


def _distinguish(files: Sequence[Path]) -> tuple[str, ...]:
    """Stems; where two are alike, with their folder."""
    stems = [file.stem for file in files]
    if len(set(stems)) == len(stems):
        return tuple(stems)
    return tuple(f"{file.parent.name}/{file.stem}" for file in files)


# --- The figures of an evaluation as a table, for people.

_WIDE = 80  # where nobody looks at a terminal and COLUMNS does not say
_NARROW = 60  # no room for the column of ceilings
_LIMITS_FOR = 3  # systems side by side: more have no room for limits
_CELL = 9


def print_report(
    report: Report,
    shown: Sequence[str] | None = None,
    every: bool = False,
    first: Sequence[str] = (),
) -> None:
    """Print figures of one system to stdout, `first` before those that matter."""
    from monitor.lab.evaluation.report.report import facts, meaning

    console = made_console(_WIDE)
    console.print(f"{report.name}: {facts(report)}", style="bold")
    _warn(console, report)
    for title, keys in _tables(report.figures, shown, every, first):
        figures = [report.figures[key] for key in keys]
        _print_figures(console, title, figures)
        if title in (_FIRST, _CHOSEN):
            console.print()
            notes = report.notes if shown is None else report.notes_on(shown)
            for paragraph in (*(meaning(report) if title == _FIRST else ()), *notes):
                console.print(paragraph)
    _print_more(console, len(report.figures), shown, every)


def _warn(console: Console, report: Report) -> None:
    for text in report.warnings:
        console.print(f"WARNING: {text}", style="bold red")


def _print_figures(console: Console, title: str, figures: Sequence[Figure]) -> None:
    from monitor.lab.evaluation.report.report import tie_rules
    from monitor.lab.report.model import format_limits, format_value

    notes = _Notes()
    columns = [("value", 9), ("95 % interval", 17), ("ceiling", 7)]
    if console.width < _NARROW:
        del columns[2]
    table = _table(title, console.width - 10 - sum(width + 1 for _, width in columns))
    for name, width in columns:
        table.add_column(name, justify="right", min_width=width, no_wrap=True, header_style="dim")
    _end(table)
    for figure in figures:
        ceiling = "" if figure.ceiling is None else format_value(figure.ceiling, figure.unit)
        value = format_value(figure.value, figure.unit, figure.text)
        cells = (value, format_limits(figure), ceiling)[: len(columns)]
        table.add_row(figure.label, *cells, _unit(figure), notes.number(_sentence(figure.note)))
    console.print()
    console.print(table)
    notes.print(console, tie_rules(figures))


def print_comparison(
    comparison: Comparison,
    shown: Sequence[str] | None = None,
    every: bool = False,
    first: Sequence[str] = (),
) -> None:
    """Print figures of several systems to stdout, a column for each, as `print_report`."""
    from monitor.lab.evaluation.report.report import facts, meaning

    console = made_console(_WIDE)
    for report in comparison.reports:
        console.print(f"{report.name}: {facts(report)}", style="bold")
        _warn(console, report)
    rows = {row.key: row for row in comparison.rows}
    for title, keys in _tables(rows, shown, every, first):
        _print_rows(console, title, comparison, [rows[key] for key in keys])
        if title not in (_FIRST, _CHOSEN):
            continue
        console.print("\n\N{DEGREE SIGN} nearest to no evidence")
        for note in comparison.notes:
            console.print(note)
        console.print()
        for report in comparison.reports:
            for paragraph in meaning(report)[: title == _FIRST]:
                console.print(f"{report.name}: {paragraph}")
        note_counts = Counter(
            note
            for report in comparison.reports
            for note in (report.notes if shown is None else report.notes_on(shown))
        )
        for note, count in note_counts.items():
            names = ", ".join(
                compared.name for compared in comparison.reports if note in compared.notes
            )
            console.print(note if count == len(comparison.names) else f"{names}: {note}")
    _print_more(console, len(rows), shown, every)


def _print_rows(console: Console, title: str, comparison: Comparison, rows: Sequence[Row]) -> None:
    """Print as many systems side by side as there is room for, then the others."""
    from monitor.lab.evaluation.report.report import tie_rules

    names = comparison.names
    room = console.width - 34
    most = max(1, room // (_CELL + 1))
    wide = len(names) <= min(_LIMITS_FOR, room // (_CELL + 5))
    notes = _Notes()
    for first in range(0, len(names), most):
        part = range(first, min(first + most, len(names)))
        table = _table(title, max(20, console.width - 11 - len(part) * (_CELL + 1)), 24)
        for i in part:
            width = min(18, room // len(names) - 1) if wide else _CELL
            table.add_column(
                names[i], justify="right", width=width, overflow="fold", header_style="dim"
            )
        _end(table)
        for row in rows:
            table.add_row(
                row.first.label,
                *(_cell(row, i, wide) for i in part),
                _unit(row.first),
                notes.number(_format_note(row, names)),
            )
        console.print()
        console.print(table)
    notes.print(console, tie_rules([row.first for row in rows]))


def _cell(row: Row, index: int, limits: bool) -> str:
    from monitor.lab.report.model import format_limits, format_value

    figure = row.figures[index]
    if figure is None:
        return "-"
    text = format_value(figure.value, figure.unit, figure.text) + _marks(row, index)
    between = format_limits(figure) if limits else ""
    return f"{text}\n{between}" if between else text


def print_groups(
    parts: Sequence[Grouped], shown: Sequence[str] | None = None, every: bool = False
) -> None:
    """Print the groups of each system to stdout, a column for each and one for their average."""
    console = made_console(_WIDE)
    for part in parts:
        console.print(f"\n{part.name}, group by group", style="bold")
        for note in part.notes:
            console.print(note)
        rows = {row.key: row for row in part.comparison.rows}
        for title, keys in _tables(rows, shown, every):
            _print_rows(console, title, part.comparison, [rows[key] for key in keys])
        first = part.comparison.names[0]
        console.print(f"\n* differs from {first} · \N{DEGREE SIGN} nearest to no evidence")


def print_pairs(pairs: Sequence[Pair], reports: Sequence[Report]) -> None:
    """Print the differences of pairs of systems to stdout, a line each."""
    from monitor.lab.evaluation.report.comparing import explain_pairs, p_text
    from monitor.lab.report.model import Figure, format_limits, format_value

    if not pairs:
        return
    console = made_console(_WIDE)
    replicates = min(report.replicates for report in reports)
    smallest = len(pairs) / max(replicates, 1)
    first = {key: figure for report in reports for key, figure in report.figures.items()}
    for key in pairs[0].differences:
        if all(pair.differences[key].low is None for pair in pairs):
            continue
        unit = first[key].unit
        table = _table(first[key].label, console.width - 48)
        for name, width in (("difference", 10), ("limits", 20), ("p", 7), ("", 1)):
            table.add_column(name, justify="right", min_width=width, header_style="dim")
        for pair in pairs:
            difference = pair.differences[key]
            between = format_limits(
                Figure("", "", difference.value, unit, low=difference.low, high=difference.high)
            )
            table.add_row(
                f"{pair.other} \N{MINUS SIGN} {pair.first}",
                format_value(difference.value, unit),
                between,
                p_text(pair.p[key], smallest),
                "*" if difference.significant else "",
            )
        console.print()
        console.print(table)
    console.print()
    for note in explain_pairs(pairs, replicates):
        console.print(note)


def print_catalogue() -> None:
    """Print the name of every figure to stdout, with what it says."""
    from rich.table import Table

    from monitor.lab.evaluation.report.report import entries, optional_entries

    table = Table.grid(padding=(0, 1, 0, 0))
    for entry in entries():
        table.add_row(entry.name, entry.says)
    for name, entry in optional_entries():
        table.add_row(entry.name, f"with {name}: {entry.says}")
    made_console(_WIDE).print(table)


class _Notes:
    """Sentences under a table, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, note: str) -> str:
        return str(self._numbers.setdefault(note, len(self._numbers) + 1)) if note else ""

    def print(self, console: Console, ties: str) -> None:
        from rich.table import Table

        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(justify="right", min_width=3, style="dim")
        grid.add_column(style="dim")
        for note, number in self._numbers.items():
            grid.add_row(str(number), note)
        if ties:
            grid.add_row("", ties)
        console.print(grid)


def _table(title: str, width: int, most: int = 34) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(title, width=min(most, max(12, width)), overflow="fold", header_style="bold")
    return table


def _end(table: Table) -> None:
    """Add the last two columns of every table."""
    table.add_column("unit", width=5, header_style="dim")
    table.add_column("", justify="right", min_width=2, no_wrap=True, header_style="dim")


_FIRST, _CHOSEN = "The figures that matter", "Figure"


def _tables(
    keys: Iterable[str], shown: Sequence[str] | None, every: bool, first: Sequence[str] = ()
) -> Iterable[tuple[str, list[str]]]:
    """Title and keys of each table."""
    from monitor.lab.evaluation.family import family_of
    from monitor.lab.evaluation.report.report import by_family, main_keys, title_of

    have = list(keys)
    if shown is not None:
        yield _CHOSEN, [key for key in shown if key in have]
        return
    yield _FIRST, [*(key for key in first if key in have), *main_keys(have)]
    for key, members in by_family(have).items():
        family = family_of(key)
        if every or (family is not None and family.option):
            yield title_of(key), members


def _print_more(console: Console, count: int, shown: Sequence[str] | None, every: bool) -> None:
    if shown is None and not every:
        console.print(f"\nAll {count} figures: --all. What each one says: --figures help.")


def _marks(row: Row, index: int) -> str:
    private = "\N{DEGREE SIGN}" if row.most_private == index else ""
    return private + ("*" if row.differs[index] else "")


def _unit(figure: Figure) -> str:
    return "" if figure.unit in ("share", "count") else figure.unit


def _format_note(row: Row, names: Sequence[str]) -> str:
    """Format its note as a sentence, unless it begins with the name of a system."""
    note = row.note(names)
    return _sentence(note) if note == row.first.note else note


def _sentence(note: str) -> str:
    note = note.strip()
    return note[:1].upper() + note[1:] + ("" if note.endswith(".") or not note else ".")


_FILE = click.Path(path_type=Path)
_VOICE = click.Choice(("original", "anonymised"))


@dataclass(frozen=True, slots=True)
class ValidationOptions:
    """Options of a forensic validation."""

    validation: Path | None = option(
        "--validation FILE.html",
        "Instead of the papers' metrics: a forensic validation of likelihood ratios, to print; CSV "
        "and JSON beside it. Tippett, PAV, ECE and DET plots, Cllr and its parts, devPAV, ELUB and "
        "invariance bounds; by length (--choose), --conditions and --groups.",
    )
    llr: str | None = option(
        "--llr",
        "SCORES are log-likelihood ratios to this base. [default: they are calibrated, on --dev, "
        "or across speakers, and said so]",
        type=click.Choice(("e", "2", "10")),
    )
    h1: str = option("--h1 TEXT", "Proposition 1, in words.", default="", show_default=False)
    h2: str = option("--h2 TEXT", "Proposition 2, in words.", default="", show_default=False)
    relevant_population: str = option(
        "--relevant-population TEXT",
        "Whom the propositions are about, in words.",
        default="",
        show_default=False,
    )
    case: str = option(
        "--case TEXT",
        "The conditions of the case, in words: recordings, channels, lengths.",
        default="",
        show_default=False,
    )
    criteria: tuple[str, ...] = option(
        "--criteria",
        "What has to hold, decided before: cllr<=0.3,devpav<=0.1; what is met is said. Measures: "
        "cllr, min_cllr, cllr_cal, eer, devpav, elub_high ... as in the CSV.",
        type=Names(),
        default=(),
        show_default=False,
    )
    conditions: tuple[Path, ...] = option(
        "--conditions FILE",
        "The condition of each trial: a trial and its condition a line, or a table of several; "
        "seconds fall into ranges. Once for all systems, or once for each.",
    )


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """Options of the command."""

    scores: tuple[Path, ...] = argument("[SCORES]...", nargs=-1)
    labels: tuple[Path, ...] = option(
        "--labels FILE",
        "Who really spoke: a column or name a trial, or a trial list. Once for all systems, or "
        "once for each. [default: what the scores say themselves]",
    )
    trials: tuple[Path, ...] = option(
        "--trials FILE", "Instead of SCORES: embeddings of the trials, to be scored here by cosine."
    )
    enrolment: tuple[Path, ...] = option(
        "--enrolment FILE",
        "The embeddings that they are compared with; once for all systems, or once for each.",
    )
    scoring: str = option(
        "--scoring",
        "Several enrolments of a speaker: their mean (of embeddings, or of scores), or the "
        "nearest of them.",
        type=click.Choice(("average", "max")),
        default="average",
    )
    enrolment_labels: tuple[Path, ...] = option(
        "--enrolment-labels FILE",
        "Whose the enrolments in SCORES are, where speakers have several: an enrolment and its "
        "speaker a line.",
    )
    dev: tuple[Path, ...] = option(
        "--dev FILE",
        "Scores of other speakers, as many or not, to calibrate LID on; once for all systems, or "
        "once for each. [default: cross-fitted over the speakers of SCORES, and said so]",
    )
    dev_labels: tuple[Path, ...] = option("--dev-labels FILE", "As --labels, of --dev.")
    names: tuple[tuple[str, ...], ...] = option(
        "--names",
        "What the systems are called, in order. [default: the names of their files]",
        type=Names(),
        multiple=True,
    )
    groups: Path | None = option(
        "--groups FILE",
        "A group of each speaker (Kaldi's spk2gender, or a table): each group by itself, its "
        "trials against its own enrolled speakers, and the average, as VoicePrivacy reports.",
    )
    group_by: str | None = option(
        "--group-by COLUMN",
        "Of a table with several, the column of --groups; without --groups, what `monitor score` "
        "has put into SCORES, such as gender.",
    )
    choose: tuple[str, ...] | None = option(
        "--choose",
        "Of SCORES from `monitor score`, which: features, same or cross, T=10, D=30; of "
        "VoicePrivacy's folders: libri_dev, f, aa ...; words of one sort are alternatives. "
        "[default: all, side by side]",
        type=Names(),
    )
    data: Path | None = option(
        "--data FOLDER",
        "Of VoicePrivacy's folders: where SET_trials_f/trials and the other lists are. "
        "[default: data/ beside exp/]",
    )
    clear_results: Path | None = option(
        "--clear-results FOLDER",
        "Of VoicePrivacy's folders: results of a network trained on clear speech; an attacker who "
        "tells less than 0.9 of its bits of clear speech is marked undertrained. [default: "
        "asv_orig or asv_ssl beside]",
    )
    query: str | None = option("--query", "What the trials are; needs --reference.", type=_VOICE)
    reference: str | None = option(
        "--reference", "What they are compared with; needs --query.", type=_VOICE
    )
    unmated: str = option(
        "--unmated",
        "Impostor trials, whose speaker is not enrolled: EER and others that need no ranks count "
        "them; or they are dropped, or refused.",
        type=click.Choice(("count", "drop", "refuse")),
        default="count",
    )
    ties: str = option(
        "--ties",
        "The rank of a speaker whose score others share: all of the shared ranks, the first, the "
        "last or the middle one.",
        type=click.Choice(("spread", "optimistic", "pessimistic", "mid")),
        default="spread",
    )
    epsilon: float | None = option(
        "--epsilon NATS",
        "What the anonymiser declares for one trial: adds the accounting over several.",
        least=0,
    )
    delta: float = option(
        "--delta",
        "Chance with which such a bound may fail.",
        type=FiniteRange(0, 1, min_open=True, max_open=True),
        default=1e-4,
    )
    among: tuple[int, ...] = option(
        "--among",
        "Say IdR and MeanD among so many people, such as 1e4,1e6: by four forms that rates may "
        "follow, each with limits, the bracket over them, and whether so few enrolled support it.",
        type=CrowdSizes(),
        default=(),
        show_default=False,
    )
    replicates: int = option(
        "--replicates",
        "Resamples of speakers behind the limits; 0 for none, at once.",
        least=0,
        most=MOST_REPLICATES,
        default=200,
    )
    seed: int = option("--seed", "Of the resamples.", least=0, default=0)
    every: bool = option("--all", "Print all figures, not only a dozen.")
    figures: tuple[str, ...] | None = option(
        "--figures",
        "Which figures, by name: eer,d_ece,idr ...; `--figures help` lists all with what they "
        "say. [default: a dozen; JSON has all]",
        type=Names(),
    )
    pairs: bool = option(
        "--pairs",
        "Also the differences of all pairs of systems, with limits and p-values that bear the "
        "number of pairs.",
    )
    as_json: bool = option("--json", "Print everything as JSON instead.")
    csv_to: Path | str | None = option(
        "--csv",
        "Write all figures to a new file as CSV, one a line, without a name print them instead; "
        "with --pairs the differences.",
        type=TextFile(".csv"),
    )
    latex_to: Path | str | None = option(
        "--latex",
        "Write a LaTeX table (booktabs) to a new file, or without a name print it instead.",
        type=TextFile(".tex"),
    )
    html: Path | None = option(
        "--html FILE.html",
        "Write one page with pictures, all figures and what they mean; it needs nothing else.",
    )
    forensic: ValidationOptions = group(ValidationOptions, "Options")


# --- A forensic validation: what examiners expect of likelihood ratios.

_OF_FIGURES = {
    "among": "--among", "as_json": "--json", "csv_to": "--csv", "epsilon": "--epsilon",
    "every": "--all", "figures": "--figures", "html": "--html", "latex_to": "--latex",
    "pairs": "--pairs", "query": "--query", "reference": "--reference",
}  # fmt: skip
"""Options that say something of the papers' metrics alone."""


def write_validation(options: EvaluateOptions, path: Path) -> int:
    """Write the validation of all systems, and say the main measures."""
    import hashlib
    from dataclasses import replace

    from monitor.cli.options import progress_over
    from monitor.documents import get_figure_paths
    from monitor.lab.evaluation.input.labels import read_conditions
    from monitor.lab.evaluation.report.validating import save_validation
    from monitor.lab.evaluation.validation import Criterion, ValidationStatement, validate

    forensic, files = options.forensic, _input_files(options)
    _check_validation(options)
    statement = ValidationStatement(
        forensic.h1.strip(), forensic.h2.strip(), forensic.relevant_population.strip(),
        forensic.case.strip(), tuple(map(Criterion.of, forensic.criteria)),
    )  # fmt: skip
    named = list_systems(options.scores, options.choose, options.data)
    systems = _prepare(options, named)
    conditions = _for_each("--conditions", forensic.conditions, len(systems))
    groups = _groups_of(options)
    outputs = (path, *get_figure_paths(path))
    if not path.exists():
        for output in outputs:
            check_new(output, "--validation writes beside it:")
    _check_html("--validation", outputs, files)
    validations = []
    with progress_over(len(systems), "validating") as step:
        for i, ((read, read_dev), table) in enumerate(zip(systems, conditions, strict=True)):
            system = read()
            tuning = None if read_dev is None else read_dev()
            step(system.comparisons.name, 1)
            validation = validate(
                system.comparisons,
                None if tuning is None else tuning.comparisons,
                llr=forensic.llr,
                conditions=() if table is None else read_conditions(table),
                groups=groups,
                replicates=options.replicates,
                seed=options.seed,
                notes=(*system.warnings, *system.notes, *(tuning.notes if tuning else ())),
            )
            facts = _facts(named[i].choose if named else ())
            validations.append(replace(validation, facts=facts))
    digests = {}
    for file in filter(Path.is_file, files):
        with file.open("rb") as content:
            digests[str(file)] = hashlib.file_digest(content, "sha256").hexdigest()
    csv, json = save_validation(validations, path, statement, digests)
    print_validations(validations, statement)
    say(f"the document is {path}, its figures are in {csv.name} and {json.name}")
    return 0


def _check_validation(options: EvaluateOptions) -> None:
    for name, option_name in _OF_FIGURES.items():
        if getattr(options, name):
            raise UsageError(
                f"--validation makes a document of its own, CSV and JSON beside it: leave out "
                f"{option_name}"
            )


def _check_html(option_name: str, outputs: Sequence[Path], files: Iterable[Path]) -> None:
    """Refuse documents of another ending, that cannot be written, or that are inputs."""
    from monitor.sinks.jsonl import refuse_overwrite

    if outputs[0].suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{option_name} {outputs[0].name}: let the name end in .html")
    for output in outputs:
        check_output(output)
        refuse_overwrite(output, [str(file) for file in files])


def _facts(choose: Sequence[str]) -> dict[str, str]:
    """Name the words that a system was chosen by."""
    facts = {}
    for sort, word in zip(("feature", "session", "T", "D"), choose, strict=False):
        facts[sort] = word.removeprefix(f"{sort}=") + " s" * (sort in ("T", "D"))
    return facts


def print_validations(validations: Sequence[Validation], statement: ValidationStatement) -> None:
    """Print the measures of each system to stdout, and whether criteria are met."""
    from monitor.lab.evaluation.report.validating import reservations
    from monitor.lab.evaluation.validation import MEASURES
    from monitor.lab.report.model import format_limits, format_value

    console = made_console(_WIDE)
    for validation in validations:
        console.print(f"{validation.name}: {validation.calibration}", style="bold")
        for note in validation.notes:
            console.print(note)
        table = _table("Measure", console.width - 50)
        for name, width in (("value", 9), ("95 % interval", 17), ("criterion", 13)):
            table.add_column(name, justify="right", min_width=width, header_style="dim")
        table.add_column("unit", width=5, header_style="dim")
        doubts: list[str] = []
        for key, (label, unit, _) in MEASURES.items():
            figure = validation.total.figures[key]
            required = [criterion for criterion in statement.criteria if criterion.name == key]
            doubts += reservations(figure, required)
            met = [
                f"{criterion.sign}{criterion.bound:g} {_MET[criterion.met(figure.value)]}"
                + "*" * (criterion.worst_end(figure) is not None)
                for criterion in required
            ]
            table.add_row(
                label, format_value(figure.value, unit), format_limits(figure), "\n".join(met),
                _unit(figure),
            )  # fmt: skip
        console.print()
        console.print(table)
        for doubt in doubts:
            console.print(f"* {doubt}: more speakers would decide.")
        console.print()
    stated = (statement.h1, statement.h2, statement.population, statement.case)
    if not all(stated) or not statement.criteria:
        console.print(
            "Not stated, and the document says so: "
            + ", ".join(
                name
                for name, text in zip(
                    ("--h1", "--h2", "--relevant-population", "--case", "--criteria"),
                    (*stated, statement.criteria),
                    strict=True,
                )
                if not text
            )
            + "."
        )


_MET = {True: "met", False: "not met", None: "?"}


@click.command(
    "evaluate",
    cls=WithTextFiles,
    short_help="Compute privacy metrics from scores.",
)
@with_options(EvaluateOptions)
def command(options: EvaluateOptions) -> int:
    """Measure what SCORES disclose: trials x speakers, higher is more alike.

    \b
    monitor evaluate scores.npz --choose voice,T=10             of `monitor score`
    monitor evaluate scores.npy --labels speakers.txt
    monitor evaluate scores.npy --labels speakers.txt --dev d.npy --dev-labels d.txt
    monitor evaluate kaldi_scores --labels kaldi_trials --html report.html --latex table.tex
    monitor evaluate scores.npy --labels speakers.txt --among 1e4,1e6
    monitor evaluate exp/asv_anon_mcadams --choose aa           VoicePrivacy 2024, 2026
    monitor evaluate --trials anonymised.npz --enrolment original.npz --scoring max
    monitor evaluate a.npy b.npy c.npy --labels speakers.txt --names before,McAdams,ours
    monitor evaluate scores.npz --choose voice --validation voice.html --criteria "cllr<=0.3"

    SCORES are .npy (a matrix, or records of trial, speaker and score), .npz, CSV or TSV, Kaldi
    scores with their trial list, a score and key file as of VoicePrivacy and ZEBRA, or a folder of
    results of the VoicePrivacy Challenges of 2024 and 2026 (exp/asv_anon_X). What they are is seen
    in the files; .npy and lists may be as large as the disk.

    Similarity rank disclosure, local information disclosure, ZEBRA, verification, linkage, ranks as
    anonymity and true positives at few false ones: each with 95 % interval over resampled speakers
    (or why there are none), the most it could be, and a warning where it misleads. The dozen
    figures that matter come first, --all has the others. Of several systems each is compared with
    the first, or all with each other (--pairs); on the same speakers they are resampled together.
    Forensic examiners get another document (--validation).
    """
    from monitor.lab.evaluation.among import keys
    from monitor.lab.evaluation.report.comparing import all_pairs, compare
    from monitor.lab.evaluation.report.report import choose_figures, main_figures

    if options.figures == ("help",):
        print_catalogue()
        return 0
    if options.forensic.validation is not None:
        return write_validation(options, options.forensic.validation)
    _check_options(options)
    shown = (
        None if options.figures is None else choose_figures(options.figures, keys(options.among))
    )
    named = list_systems(options.scores, options.choose, options.data)
    if options.pairs and len(named or options.trials) < 2:
        raise UsageError("--pairs: give several systems")
    attribute = _groups_of(options)
    if options.html is not None:
        _check_html("--html", [options.html], _input_files(options))
    reports, parts = _measure(options, named, attribute)
    comparison = compare(reports) if len(reports) > 1 else None
    everything = options.as_json or options.csv_to == "-" or options.every
    within = shown if everything else shown or main_figures()
    pairs = all_pairs(reports, within) if options.pairs or (options.as_json and comparison) else ()
    evaluation = Evaluation(reports, parts, comparison, pairs, shown)
    _write_files(options, evaluation)
    # as the challenges report it
    first = ("verification.eer_nearest",) if any(scores.folder for scores in named) else ()
    _print_evaluation(options, evaluation, first)
    return 0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Reports of all systems, their groups and differences, and the figures to show."""

    reports: Sequence[Report]
    parts: Sequence[Grouped]
    comparison: Comparison | None
    pairs: Sequence[Pair]
    shown: Sequence[str] | None

    def csv(self, options: EvaluateOptions) -> str:
        """Format all figures, or the differences of pairs."""
        from monitor.lab.evaluation.report.comparing import all_pairs
        from monitor.lab.evaluation.report.page import figures_csv, pairs_csv

        if not options.pairs:
            return figures_csv(self.reports, self.parts, self.shown)
        in_full = options.csv_to == "-"
        return pairs_csv(self.pairs if in_full else all_pairs(self.reports, self.shown))

    def latex(self, every: bool) -> str:
        """Format a LaTeX table of the figures shown, or of all."""
        from monitor.lab.evaluation.report.page import latex_table

        rows = tuple(self.reports[0].figures) if every else self.shown
        return latex_table(self.reports, self.comparison, self.parts, rows)

    def json(self) -> str:
        """Format everything as JSON."""
        import json

        document = {
            "schema": 1,
            "systems": [report.to_json(self.shown) for report in self.reports],
            "groups": {part.name: part.to_json(self.shown) for part in self.parts},
            "comparison": None if self.comparison is None else self.comparison.to_json(self.shown),
            "pairs": [pair.to_json() for pair in self.pairs],
        }
        return json.dumps(document, allow_nan=False, indent=1)


def _check_options(options: EvaluateOptions) -> None:
    """Refuse options that do not go together, before anything is read."""
    if any(getattr(options.forensic, entry.name) for entry in fields(options.forensic)):
        raise UsageError("--llr, --h1, --h2, --relevant-population, --case, --criteria and "
                         "--conditions go with --validation FILE.html")  # fmt: skip
    if options.figures is not None and options.every:
        raise UsageError("--figures chooses, --all shows all: give one of them")
    if options.as_json + (options.csv_to == "-") + (options.latex_to == "-") > 1:
        raise UsageError("--json, --csv and --latex: give one of them, or files to the others")
    for name, path in (("--csv", options.csv_to), ("--latex", options.latex_to)):
        if path is not None and path != "-":
            check_new(Path(path), name)
    if not options.among and any(name.startswith("among") for name in options.figures or ()):
        raise UsageError("--figures among ... goes with --among, such as --among 1e4,1e6")
    if (options.query is None) != (options.reference is None):
        raise UsageError("--query and --reference go together: each is original or anonymised")


def _measure(
    options: EvaluateOptions, named: Sequence[NamedScores], attribute: Attribute | None
) -> tuple[list[Report], list[Grouped]]:
    """Evaluate each system, and its groups by themselves."""
    from dataclasses import replace

    from monitor.cli.options import progress_over
    from monitor.lab.evaluation.comparisons import Roles
    from monitor.lab.evaluation.evaluating import evaluate, steps
    from monitor.lab.evaluation.family import EvaluationSettings
    from monitor.lab.evaluation.report.comparing import by_group

    systems = _prepare(options, named)
    roles = Roles(options.query, options.reference) if options.query and options.reference else None
    settings = EvaluationSettings(
        options.replicates,
        options.seed,
        options.ties,
        roles,
        options.epsilon,
        options.delta,
        options.among,
    )
    reports, parts = [], []
    with progress_over(len(systems) * (steps() + 1), "evaluating") as step:
        for i, (read, read_dev) in enumerate(systems):
            system = read()
            tuning = None if read_dev is None else read_dev()
            step(system.comparisons.name, 1)
            if roles is None and named:
                settings = replace(settings, roles=_roles_of(named[i]))
            dev = None if tuning is None else tuning.matrix
            notes = (*system.notes, *(() if tuning is None else tuning.notes))
            report = evaluate(
                system.comparisons, dev, settings, notes=notes, progress=lambda name: step(name, 1)
            )
            reports.append(replace(report, warnings=(*report.warnings, *system.warnings)))
            if attribute is not None:
                measure = partial(evaluate, dev=dev, settings=settings)
                parts.append(by_group(system.comparisons, attribute.of, measure, attribute.label))
    return reports, parts


def _write_files(options: EvaluateOptions, evaluation: Evaluation) -> None:
    from monitor.files import write_text
    from monitor.lab.evaluation.report.page import save_page

    if options.html is not None:
        save_page(
            evaluation.reports, options.html, evaluation.comparison, evaluation.parts,
            evaluation.pairs if options.pairs else (),
        )  # fmt: skip
        say(f"the page is {options.html}")
    if options.csv_to is not None and options.csv_to != "-":
        write_text(evaluation.csv(options), Path(options.csv_to))
        say(f"the figures are in {options.csv_to}")
    if options.latex_to is not None and options.latex_to != "-":
        write_text(evaluation.latex(options.every), Path(options.latex_to))
        say(f"the table is in {options.latex_to}")


def _print_evaluation(
    options: EvaluateOptions, evaluation: Evaluation, first: Sequence[str]
) -> None:
    """Print JSON, CSV, LaTeX or tables to stdout."""
    if options.as_json:
        click.echo(evaluation.json())
    elif options.csv_to == "-":
        click.echo(evaluation.csv(options), nl=False)
    elif options.latex_to == "-":
        click.echo(evaluation.latex(options.every), nl=False)
    else:
        if evaluation.comparison is None:
            print_report(evaluation.reports[0], evaluation.shown, options.every, first)
        else:
            print_comparison(evaluation.comparison, evaluation.shown, options.every, first)
        print_pairs(evaluation.pairs, evaluation.reports)
        print_groups(evaluation.parts, evaluation.shown, options.every)
