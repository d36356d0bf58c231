"""monitor evaluate: every metric of the papers on one score matrix, or on several side by side."""

from __future__ import annotations

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
    from monitor.lab.evaluation.comparisons import Roles
    from monitor.lab.evaluation.input.embeddings import VoicePrivacyEntry, VoicePrivacyResults
    from monitor.lab.evaluation.input.labels import Attribute
    from monitor.lab.evaluation.input.scores import EvaluationInput, ScoreFile
    from monitor.lab.evaluation.report.comparing import Grouped
    from monitor.lab.evaluation.report.document import Evaluation
    from monitor.lab.evaluation.report.report import Report

_WIDE = 80  # where nobody looks at a terminal and COLUMNS does not say


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
    from monitor.lab.evaluation.input.labels import read_conditions
    from monitor.lab.evaluation.report.validating import save_validation, validation_summary
    from monitor.lab.evaluation.validation import Criterion, ValidationStatement, validate
    from monitor.lab.report.export import get_figure_paths
    from monitor.lab.report.terminal import print_document

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
    print_document(validation_summary(validations, statement), made_console(_WIDE))
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
    from monitor.lab.evaluation.report.comparing import all_pairs
    from monitor.lab.evaluation.report.document import Evaluation
    from monitor.lab.evaluation.report.report import choose_figures, list_catalogue, main_figures
    from monitor.lab.report.model import Table
    from monitor.lab.report.terminal import print_table

    if options.figures == ("help",):
        print_table(Table.of(("", ""), list_catalogue(), names=2), made_console(_WIDE))
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
    everything = options.as_json or options.csv_to == "-" or options.every
    within = shown if everything else shown or main_figures()
    pairs = all_pairs(reports, within) if options.pairs or options.as_json else ()
    # as the challenges report it
    first = ("verification.eer_nearest",) if any(scores.folder for scores in named) else ()
    _write(options, Evaluation(reports, parts, pairs), shown, first)
    return 0


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


def _write(
    options: EvaluateOptions,
    evaluation: Evaluation,
    shown: Sequence[str] | None,
    first: Sequence[str],
) -> None:
    """Write the files that were asked for; print JSON, CSV, LaTeX or tables to stdout."""
    from monitor.files import write_text
    from monitor.lab.evaluation.report.comparing import all_pairs
    from monitor.lab.evaluation.report.document import pairs_csv
    from monitor.lab.report.html import render_html
    from monitor.lab.report.terminal import print_document

    printed = ""
    if options.as_json:
        printed = evaluation.json(shown) + "\n"
    if options.html is not None:
        write_text(render_html(evaluation.page()), options.html)
        say(f"the page is {options.html}")
    if options.csv_to is not None:
        is_printed, csv = options.csv_to == "-", ""
        if not options.pairs:
            csv = evaluation.csv(shown)
        else:
            pairs = evaluation.pairs if is_printed else all_pairs(evaluation.reports, shown)
            csv = pairs_csv(pairs)
        if is_printed:
            printed = csv
        else:
            write_text(csv, Path(options.csv_to))
            say(f"the figures are in {options.csv_to}")
    if options.latex_to is not None:
        keys = tuple(evaluation.reports[0].figures) if options.every else shown
        latex = evaluation.latex(keys)
        if options.latex_to == "-":
            printed = latex
        else:
            write_text(latex, Path(options.latex_to))
            say(f"the table is in {options.latex_to}")
    if printed:
        click.echo(printed, nl=False)
    else:
        print_document(evaluation.summary(shown, options.every, first), made_console(_WIDE))
