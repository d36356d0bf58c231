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
    given,
    group,
    made_console,
    option,
    say,
)
from monitor.errors import UsageError
from monitor.phrases import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from monitor.lab.evaluation.family import Figure
    from monitor.lab.evaluation.input.files import Attribute
    from monitor.lab.evaluation.input.score_file import ScoreFile
    from monitor.lab.evaluation.input.scores import EvaluationInput
    from monitor.lab.evaluation.input.voiceprivacy import VoicePrivacyEntry, VoicePrivacyResults
    from monitor.lab.evaluation.report.comparing import Comparison, Grouped, Pair, Row
    from monitor.lab.evaluation.report.report import Report
    from monitor.lab.evaluation.scores.comparisons import Roles
    from monitor.lab.evaluation.validation import Validation, ValidationStatement

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


def listed(
    files: Sequence[Path], choose: Sequence[str] | None, data: Path | None = None
) -> list[NamedScores]:
    """The systems in SCORES: one a file, or as many as are chosen of a score file or a folder."""
    from monitor.lab.evaluation.input.voiceprivacy import VoicePrivacyEntry, VoicePrivacyResults

    found: list[NamedScores] = []
    any_file = False
    if data is not None and not any(file.is_dir() for file in files):
        raise UsageError("--data goes with folders of VoicePrivacy's results as SCORES")
    for file, name in zip(files, _told_apart(files), strict=True):
        held = VoicePrivacyResults.at(file, data) if file.is_dir() else _score_file(file)
        if held is None:
            found.append(NamedScores(file, name))
            continue
        any_file = True
        entries = held.chosen(choose or ())
        folder = held if isinstance(held, VoicePrivacyResults) else None
        if len(entries) > MOST_SYSTEMS:
            raise UsageError(
                f"{file.name} has {len(entries)} matrices, more than {MOST_SYSTEMS} side by side: "
                f"--choose some of {held.listed()}"
            )
        words = [entry.words for entry in entries]
        varied = [i for i in range(len(words[0])) if len({each[i] for each in words} - {""}) > 1]
        for each, entry in zip(words, entries, strict=True):
            own = [each[i] for i in varied if each[i]]
            told = " ".join([name] * (len(files) > 1 or not own) + own)
            if isinstance(entry, VoicePrivacyEntry):
                found.append(NamedScores(file, told, (), folder, entry))
            else:
                found.append(NamedScores(file, told, each))
    if choose is not None and not any_file:
        raise UsageError("--choose goes with SCORES from monitor score, or VoicePrivacy's folders")
    return found


def groups_within(files: Sequence[Path], name: str) -> Attribute:
    """The attribute of that name that score files hold."""
    from dataclasses import replace

    found: Attribute | None = None
    for held in filter(None, map(_score_file, files)):
        if held.groups is None or held.groups.name.lower() != name.lower():
            has = f"has {held.groups.name}" if held.groups is not None else "has no groups"
            raise UsageError(f"--group-by {name}: {held.path.name} {has}; give --groups FILE")
        if found is not None and any(found.of.get(k, v) != v for k, v in held.groups.of.items()):
            raise UsageError(
                f"--group-by {name}: {held.path.name} says otherwise than another file"
            )
        found = held.groups if found is None else replace(found, of={**found.of, **held.groups.of})
    if found is None:
        raise UsageError("--group-by goes with --groups, or with SCORES from monitor score")
    return found


def _score_file(file: Path) -> ScoreFile | None:
    """The file, where it is one of `monitor score`; what else is wrong is told when it is read."""
    from monitor.lab.evaluation.input.files import kind_of
    from monitor.lab.evaluation.input.score_file import ScoreFile

    if not file.is_file() or not file.stat().st_size:
        return None
    return ScoreFile.at(file) if kind_of(file) == "npz" else None


def _roles_of(named: NamedScores | None) -> Roles | None:
    """What VoicePrivacy's scenarios say was anonymised: enrolment, then trials."""
    from monitor.lab.evaluation.scores.comparisons import Roles

    if named is None or named.entry is None:
        return None
    voice = {"o": "original", "a": "anonymised"}
    scenario = named.entry.scenario
    return Roles(query=voice[scenario[1]], reference=voice[scenario[0]])


def systems_of(
    asked: EvaluateOptions, scores: Sequence[NamedScores]
) -> list[Callable[[], EvaluationInput]]:
    """How each system is read, one after the other."""
    from monitor.lab.evaluation.input.embeddings import read_embeddings
    from monitor.lab.evaluation.input.scores import read_scores

    if bool(scores) == bool(asked.trials):
        raise UsageError("give SCORES, or embeddings with --trials and --enrolment")
    names = tuple(name for group in asked.names for name in group)
    files = [each.file for each in scores] or asked.trials
    if names and len(names) != len(files):
        raise UsageError(f"--names: {len(names)} names for {plural(len(files), 'system')}")
    called = names or tuple(each.name for each in scores) or _told_apart(files)
    if len(set(called)) != len(called):
        raise UsageError("two systems have one name: give each its own with --names")
    if asked.trials:
        if asked.labels:
            raise UsageError("--labels goes with SCORES: embeddings come with their speakers")
        if asked.enrolment_labels:
            raise UsageError("--enrolment-labels goes with SCORES: embeddings have speakers")
        if not asked.enrolment:
            raise UsageError("--trials needs --enrolment: the speakers to compare with")
        beside = _for_each("--enrolment", asked.enrolment, len(files))
        return [
            partial(read_embeddings, file, other, asked.scoring, name=name, unmated=asked.unmated)
            for file, other, name in zip(files, beside, called, strict=True)
            if other is not None
        ]
    if asked.enrolment:
        raise UsageError("--enrolment goes with --trials")
    if any(each.folder for each in scores) and (asked.labels or asked.enrolment_labels):
        raise UsageError("VoicePrivacy's folders have their lists (--data): leave out the labels")
    labels = _for_each("--labels", asked.labels, len(files))
    models = _for_each("--enrolment-labels", asked.enrolment_labels, len(files))
    return [
        partial(each.folder.read, each.entry, name, unmated=asked.unmated,
                clear=asked.clear_results)
        if each.folder and each.entry
        else partial(
            read_scores, each.file, label, name=name, unmated=asked.unmated,
            enrolment_labels=model, scoring=asked.scoring, choose=each.choose,
        )
        for each, label, model, name in zip(scores, labels, models, called, strict=True)
    ]  # fmt: skip


def dev_of(
    asked: EvaluateOptions, systems: Sequence[tuple[str, ...]]
) -> list[Callable[[], EvaluationInput] | None]:
    """How the development scores of each system are read, by what it was chosen by itself."""
    from monitor.lab.evaluation.input.scores import read_scores

    if asked.dev_labels and not asked.dev:
        raise UsageError("--dev-labels goes with --dev")
    files = _for_each("--dev", asked.dev, len(systems))
    beside = _for_each("--dev-labels", asked.dev_labels, len(systems))
    return [
        None if file is None else partial(read_scores, file, other, choose=choose)
        for file, other, choose in zip(files, beside, systems, strict=True)
    ]


def _for_each(option: str, files: Sequence[Path], count: int) -> Sequence[Path | None]:
    if len(files) not in (0, 1, count):
        raise UsageError(f"{option}: give it once, or once for each of {count} systems")
    return list(files) * count if len(files) == 1 else list(files) or [None] * count


def _told_apart(files: Sequence[Path]) -> tuple[str, ...]:
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
    from monitor.lab.evaluation.report.report import format_limits, format_value, tie_rules

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
        said = Counter(
            note
            for report in comparison.reports
            for note in (report.notes if shown is None else report.notes_on(shown))
        )
        for note, count in said.items():
            names = ", ".join(each.name for each in comparison.reports if note in each.notes)
            console.print(note if count == len(comparison.names) else f"{names}: {note}")
    _print_more(console, len(rows), shown, every)


def _print_rows(console: Console, title: str, comparison: Comparison, rows: Sequence[Row]) -> None:
    """As many systems side by side as there is room for, then the others."""
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
                notes.number(_said(row, names)),
            )
        console.print()
        console.print(table)
    notes.print(console, tie_rules([row.first for row in rows]))


def _cell(row: Row, index: int, limits: bool) -> str:
    from monitor.lab.evaluation.report.report import format_limits, format_value

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
    from monitor.lab.evaluation.family import Figure
    from monitor.lab.evaluation.report.comparing import p_text, said_of
    from monitor.lab.evaluation.report.report import format_limits, format_value

    if not pairs:
        return
    console = made_console(_WIDE)
    replicates = min(report.replicates for report in reports)
    least = len(pairs) / max(replicates, 1)
    first = {key: figure for report in reports for key, figure in report.figures.items()}
    for key in pairs[0].differences:
        if all(pair.differences[key].low is None for pair in pairs):
            continue
        unit = first[key].unit
        table = _table(first[key].label, console.width - 48)
        for name, width in (("difference", 10), ("limits", 20), ("p", 7), ("", 1)):
            table.add_column(name, justify="right", min_width=width, header_style="dim")
        for pair in pairs:
            each = pair.differences[key]
            between = format_limits(Figure("", "", each.value, unit, low=each.low, high=each.high))
            table.add_row(
                f"{pair.other} \N{MINUS SIGN} {pair.first}",
                format_value(each.value, unit),
                between,
                p_text(pair.p[key], least),
                "*" if each.significant else "",
            )
        console.print()
        console.print(table)
    console.print()
    for note in said_of(pairs, replicates):
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
    """The last two columns of every table."""
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


def _said(row: Row, names: Sequence[str]) -> str:
    """As a sentence, unless it begins with the name of a system."""
    note = row.note(names)
    return _sentence(note) if note == row.first.note else note


def _sentence(note: str) -> str:
    note = note.strip()
    return note[:1].upper() + note[1:] + ("" if note.endswith(".") or not note else ".")


_FILE = click.Path(path_type=Path)
_VOICE = click.Choice(("original", "anonymised"))


@dataclass(frozen=True, slots=True)
class ValidationOptions:
    """What a forensic validation is told."""

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
    """What was asked for."""

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


def validated(asked: EvaluateOptions, path: Path) -> int:
    """Write the validation of all systems, and say the main measures."""
    import hashlib

    from monitor.cli.options import progress_over
    from monitor.documents import get_figure_paths
    from monitor.lab.evaluation.input.files import read_attribute, read_conditions
    from monitor.lab.evaluation.report.validating import save_validation
    from monitor.lab.evaluation.validation import Criterion, ValidationStatement, validate
    from monitor.sinks.jsonl import refuse_overwrite

    told = asked.forensic
    for name, option_name in _OF_FIGURES.items():
        if getattr(asked, name):
            raise UsageError(
                f"--validation makes a document of its own, CSV and JSON beside it: leave out "
                f"{option_name}"
            )
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--validation {path.name}: let the name end in .html")
    statement = ValidationStatement(
        told.h1.strip(), told.h2.strip(), told.relevant_population.strip(), told.case.strip(),
        tuple(map(Criterion.of, told.criteria)),
    )  # fmt: skip
    named = listed(asked.scores, asked.choose, asked.data)
    systems = systems_of(asked, named)
    others = dev_of(asked, [each.choose for each in named] or [()] * len(systems))
    conditions = _for_each("--conditions", told.conditions, len(systems))
    groups = None
    if asked.groups is not None:
        groups = read_attribute(asked.groups, asked.group_by)
    elif asked.group_by is not None:
        groups = groups_within(asked.scores, asked.group_by)
    files = dict.fromkeys((
        *asked.scores, *asked.labels, *asked.trials, *asked.enrolment, *asked.enrolment_labels,
        *asked.dev, *asked.dev_labels, *filter(None, (asked.groups,)), *told.conditions,
    ))  # fmt: skip
    for each in (path, *get_figure_paths(path)):
        if not path.exists():
            check_new(each, "--validation writes beside it:")
        check_output(each)
        refuse_overwrite(each, [str(file) for file in files])
    found = []
    with progress_over(len(systems), "validating") as step:
        for i, (read, read_dev, table) in enumerate(zip(systems, others, conditions, strict=True)):
            system = read()
            tuning = None if read_dev is None else read_dev()
            step(system.comparisons.name, 1)
            sorts = ("feature", "session", "T", "D")
            words = zip(sorts, named[i].choose if named else (), strict=False)
            known = {sort: word.removeprefix(f"{sort}=") for sort, word in words}
            for sort in ("T", "D"):
                if sort in known:
                    known[sort] += " s"
            found.append(
                validate(
                    system.comparisons,
                    None if tuning is None else tuning.comparisons,
                    llr=told.llr,
                    conditions=() if table is None else read_conditions(table),
                    groups=groups,
                    replicates=asked.replicates,
                    seed=asked.seed,
                    notes=(
                        *system.warnings,
                        *system.notes,
                        *(() if tuning is None else tuning.notes),
                    ),
                    facts=known,
                )
            )
    digests = {}
    for file in filter(Path.is_file, files):
        with file.open("rb") as held:
            digests[str(file)] = hashlib.file_digest(held, "sha256").hexdigest()
    beside = save_validation(found, path, statement, digests)
    print_validations(found, statement)
    say(f"the document is {path}, its figures are in {beside[0].name} and {beside[1].name}")
    return 0


def print_validations(found: Sequence[Validation], statement: ValidationStatement) -> None:
    """Print the measures of each system to stdout, and whether criteria are met."""
    from monitor.lab.evaluation.report.report import format_limits, format_value
    from monitor.lab.evaluation.report.validating import reservations
    from monitor.lab.evaluation.validation import MEASURES

    console = made_console(_WIDE)
    for each in found:
        console.print(f"{each.name}: {each.calibration}", style="bold")
        for note in each.notes:
            console.print(note)
        table = _table("Measure", console.width - 50)
        for name, width in (("value", 9), ("95 % interval", 17), ("criterion", 13)):
            table.add_column(name, justify="right", min_width=width, header_style="dim")
        table.add_column("unit", width=5, header_style="dim")
        doubts: list[str] = []
        for key, (label, unit, _) in MEASURES.items():
            figure = each.whole.figures[key]
            asked = [own for own in statement.criteria if own.name == key]
            doubts += reservations(figure, asked)
            met = [
                f"{own.sign}{own.bound:g} {_MET[own.met(figure.value)]}"
                + "*" * (own.worst_end(figure) is not None)
                for own in asked
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
@given(EvaluateOptions)
def command(asked: EvaluateOptions) -> int:
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
    import json
    from dataclasses import replace
    from functools import partial

    from monitor.cli.options import progress_over
    from monitor.errors import UsageError
    from monitor.files import write_text
    from monitor.lab.evaluation.among import keys
    from monitor.lab.evaluation.evaluating import evaluate, steps
    from monitor.lab.evaluation.input.files import read_attribute
    from monitor.lab.evaluation.report.comparing import all_pairs, by_group, compare
    from monitor.lab.evaluation.report.page import figures_csv, latex_table, pairs_csv
    from monitor.lab.evaluation.report.report import chosen, main_figures
    from monitor.lab.evaluation.scores.comparisons import Roles
    from monitor.sinks.jsonl import refuse_overwrite

    if asked.figures == ("help",):
        print_catalogue()
        return 0
    if asked.forensic.validation is not None:
        return validated(asked, asked.forensic.validation)
    if any(getattr(asked.forensic, each.name) for each in fields(asked.forensic)):
        raise UsageError("--llr, --h1, --h2, --relevant-population, --case, --criteria and "
                         "--conditions go with --validation FILE.html")  # fmt: skip
    if asked.figures is not None and asked.every:
        raise UsageError("--figures chooses, --all shows all: give one of them")
    as_csv, as_latex = asked.csv_to == "-", asked.latex_to == "-"
    if asked.as_json + as_csv + as_latex > 1:
        raise UsageError("--json, --csv and --latex: give one of them, or files to the others")
    csv_file, latex_file = (None if to == "-" else to for to in (asked.csv_to, asked.latex_to))
    for name, path in (("--csv", csv_file), ("--latex", latex_file)):
        if path is not None:
            check_new(Path(path), name)
    if (
        asked.figures is not None
        and not asked.among
        and any(name.startswith("among") for name in asked.figures)
    ):
        raise UsageError("--figures among ... goes with --among, such as --among 1e4,1e6")
    shown = None if asked.figures is None else chosen(asked.figures, keys(asked.among))
    named = listed(asked.scores, asked.choose, asked.data)
    if asked.pairs and len(named or asked.trials) < 2:
        raise UsageError("--pairs: give several systems")
    within_scores = None
    if asked.group_by is not None and asked.groups is None:
        within_scores = groups_within(asked.scores, asked.group_by)
    beside = () if asked.groups is None else (asked.groups,)
    files = (
        *asked.scores,
        *asked.labels,
        *asked.trials,
        *asked.enrolment,
        *asked.enrolment_labels,
        *asked.dev,
        *asked.dev_labels,
        *beside,
    )
    if asked.html is not None:
        if asked.html.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"--html {asked.html.name}: let the name end in .html")
        check_output(asked.html)
        refuse_overwrite(asked.html, [str(file) for file in files])
    if (asked.query is None) != (asked.reference is None):
        raise UsageError("--query and --reference go together: each is original or anonymised")
    roles = Roles(asked.query, asked.reference) if asked.query and asked.reference else None
    systems = systems_of(asked, named)
    others = dev_of(asked, [each.choose for each in named] or [()] * len(systems))
    attribute = (
        within_scores if asked.groups is None else read_attribute(asked.groups, asked.group_by)
    )
    reports, parts = [], []
    with progress_over(len(systems) * (steps() + 1), "evaluating") as step:
        for i, (read, read_dev) in enumerate(zip(systems, others, strict=True)):
            system = read()
            tuning = None if read_dev is None else read_dev()
            step(system.comparisons.name, 1)
            measure = partial(
                evaluate,
                dev=None if tuning is None else tuning.matrix,
                replicates=asked.replicates,
                seed=asked.seed,
                ties=asked.ties,
                roles=roles or _roles_of(named[i] if named else None),
                epsilon=asked.epsilon,
                delta=asked.delta,
                among=asked.among,
            )
            notes = (*system.notes, *(() if tuning is None else tuning.notes))
            made = measure(system.comparisons, notes=notes, progress=lambda label: step(label, 1))
            reports.append(replace(made, warnings=(*made.warnings, *system.warnings)))
            if attribute is not None:
                parts.append(by_group(system.comparisons, attribute.of, measure, attribute.label))
    comparison = compare(reports) if len(reports) > 1 else None
    within = shown if asked.as_json or as_csv or asked.every else shown or main_figures()
    couples = (
        all_pairs(reports, within) if asked.pairs or (asked.as_json and len(reports) > 1) else ()
    )
    if asked.html is not None:
        from monitor.lab.evaluation.report.page import save_page

        save_page(reports, asked.html, comparison, parts, couples if asked.pairs else ())
        say(f"the page is {asked.html}")
    rows = tuple(reports[0].figures) if asked.every else shown
    # as the challenges report it
    first = ("verification.eer_nearest",) if any(each.folder for each in named) else ()

    def table() -> str:
        every_pair = couples if as_csv or not asked.pairs else all_pairs(reports, shown)
        return pairs_csv(every_pair) if asked.pairs else figures_csv(reports, parts, shown)

    if csv_file is not None:
        write_text(table(), Path(csv_file))
        say(f"the figures are in {csv_file}")
    if latex_file is not None:
        write_text(latex_table(reports, comparison, parts, rows), Path(latex_file))
        say(f"the table is in {latex_file}")
    if asked.as_json:
        found = {
            "schema": 1,
            "systems": [report.to_json(shown) for report in reports],
            "groups": {part.name: part.to_json(shown) for part in parts},
            "comparison": None if comparison is None else comparison.to_json(shown),
            "pairs": [couple.to_json() for couple in couples],
        }
        click.echo(json.dumps(found, allow_nan=False, indent=1))
    elif as_csv:
        click.echo(table(), nl=False)
    elif as_latex:
        click.echo(latex_table(reports, comparison, parts, rows), nl=False)
    else:
        if comparison is None:
            print_report(reports[0], shown, asked.every, first)
        else:
            print_comparison(comparison, shown, asked.every, first)
        print_pairs(couples, reports)
        print_groups(parts, shown, asked.every)
    return 0
