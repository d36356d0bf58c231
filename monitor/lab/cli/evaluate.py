"""monitor evaluate: every metric of the papers on one score matrix, or on several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import compress
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
    progress_over,
    say,
    setting,
    with_options,
)
from monitor.errors import UsageError
from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.lab.evaluation.comparisons import Roles
    from monitor.lab.evaluation.document import Evaluation
    from monitor.lab.evaluation.input.groups import Attribute
    from monitor.lab.evaluation.input.matching import EvaluationInput
    from monitor.lab.evaluation.input.score_file import ScoreFile
    from monitor.lab.evaluation.report import Report
    from monitor.lab.evaluation.systems import Grouped
    from monitor.lab.evaluation.voiceprivacy import VoicePrivacyEntry, VoicePrivacyResults

_WIDE = 80  # without a terminal and COLUMNS

MOST_SYSTEMS = 12  # matrices of one file to show side by side


@dataclass(frozen=True, slots=True)
class System:
    """Scores of one system, read on demand, and how they were chosen from their file."""

    name: str
    read: Callable[..., EvaluationInput]
    read_dev: Callable[[], EvaluationInput] | None = None
    choose: tuple[str, ...] = ()
    entry: VoicePrivacyEntry | None = None
    results: VoicePrivacyResults | None = None

    def load(self) -> tuple[EvaluationInput, EvaluationInput | None, tuple[str, ...]]:
        """Read the scores and the development scores, and the notes of both."""
        system, dev = self.read(), self.read_dev and self.read_dev()
        return system, dev, (*system.notes, *(dev.notes if dev else ()))

    @property
    def roles(self) -> Roles | None:
        """Anonymised sides of VoicePrivacy's scenarios: enrolment, then trials."""
        from monitor.lab.evaluation.comparisons import Roles

        if self.entry is None:
            return None
        reference, query = ({"o": "original", "a": "anonymised"}[s] for s in self.entry.scenario)
        return Roles(query=query, reference=reference)


def list_systems(options: EvaluateOptions) -> list[System]:
    """List the systems of SCORES, or of embeddings, in order."""
    if bool(options.scores) == bool(options.trials):
        raise UsageError("give SCORES, or embeddings with --trials and --enrolment")
    systems = _list_embeddings(options) if options.trials else _list_scores(options)
    names = [name for several in options.names for name in several]
    if names and len(names) != len(systems):
        raise UsageError(
            f"--names: {len(names)} names for {plural(len(systems), 'system')}, give one for each"
        )
    names = names or [system.name for system in systems]
    if len(set(names)) != len(names):
        raise UsageError("two systems have the same name: give different ones with --names")
    return [
        replace(system, name=name, read=partial(system.read, name=name), read_dev=read_dev)
        for system, name, read_dev in zip(systems, names, _list_dev(options, systems), strict=True)
    ]


def _list_embeddings(options: EvaluateOptions) -> list[System]:
    from monitor.lab.evaluation.input.embeddings import read_embeddings

    if options.labels:
        raise UsageError("--labels needs SCORES: embeddings include their speakers")
    if options.enrolment_labels:
        raise UsageError("--enrolment-labels needs SCORES: embeddings include their speakers")
    if options.choose is not None or options.data is not None:
        raise UsageError("--choose and --data need SCORES")
    if not options.enrolment:
        raise UsageError("--trials needs --enrolment: the speakers to compare with")
    enrolments = _for_each("--enrolment", options.enrolment, len(options.trials))
    return [
        System(name, partial(read_embeddings, file, other, options.scoring,
                             unmated=options.unmated, normalise=options.normalise,
                             cohort=options.cohort))
        for file, other, name in
        zip(options.trials, enrolments, _distinguish(options.trials), strict=True)
        if other is not None
    ]  # fmt: skip


def _list_scores(options: EvaluateOptions) -> list[System]:
    """List one system per file, or per chosen matrix of a score file or a folder."""
    from monitor.lab.evaluation.input.scores import read_scores
    from monitor.lab.evaluation.voiceprivacy import VoicePrivacyEntry, VoicePrivacyResults

    files = options.scores
    if options.enrolment:
        raise UsageError("--enrolment needs --trials")
    if options.normalise is not None or options.cohort is not None:
        raise UsageError(
            "normalise needs embeddings (--trials, --enrolment and cohort): finished scores do not "
            "show how the cohort scores. For recordings, use monitor score --normalise"
        )
    folders = [file for file in files if file.is_dir()]
    if options.data is not None and not folders:
        raise UsageError("--data needs folders of VoicePrivacy's results as SCORES")
    if folders and (options.labels or options.enrolment_labels):
        raise UsageError(
            "VoicePrivacy's folders have their own lists (--data): leave out the labels"
        )
    systems: list[System] = []
    any_choice = False
    for file, name in zip(files, _distinguish(files), strict=True):
        reader = partial(read_scores, file, unmated=options.unmated, scoring=options.scoring)
        source = (
            VoicePrivacyResults.find(file, options.data) if file.is_dir() else _score_file(file)
        )
        if source is None:
            systems.append(System(name, reader))
            continue
        any_choice = True
        entries = source.choose(options.choose or ())
        if len(entries) > MOST_SYSTEMS and not options.voiceprivacy:
            raise UsageError(
                f"{file.name} has {len(entries)} matrices, more than {MOST_SYSTEMS} side by side: "
                f"--choose some of {source.describe_choices()}"
            )
        words_by_place = zip(*(entry.words for entry in entries), strict=True)
        varies = [len({*words} - {""}) > 1 for words in words_by_place]
        for entry in entries:
            words = [word for word in compress(entry.words, varies) if word]
            called = " ".join([name] * (len(files) > 1 or not words) + words)
            if isinstance(entry, VoicePrivacyEntry) and isinstance(source, VoicePrivacyResults):
                read = partial(
                    source.read, entry, unmated=options.unmated, clear=options.clear_results
                )
                systems.append(System(called, read, entry=entry, results=source))
            else:
                choose = entry.words
                systems.append(System(called, partial(reader, choose=choose), choose=choose))
    if options.choose is not None and not any_choice:
        raise UsageError("--choose needs SCORES from monitor score, or VoicePrivacy's folders")
    if folders:
        return systems
    labels = _for_each("--labels", options.labels, len(systems))
    models = _for_each("--enrolment-labels", options.enrolment_labels, len(systems))
    return [
        replace(system, read=partial(system.read, labels=label, enrolment_labels=model))
        for system, label, model in zip(systems, labels, models, strict=True)
    ]


def _list_dev(
    options: EvaluateOptions, systems: Sequence[System]
) -> list[Callable[[], EvaluationInput] | None]:
    """List a function per system that reads its development scores, with the same choice."""
    from monitor.lab.evaluation.input.scores import read_scores

    if options.dev_labels and not options.dev:
        raise UsageError("--dev-labels needs --dev")
    files = _for_each("--dev", options.dev, len(systems))
    labels = _for_each("--dev-labels", options.dev_labels, len(systems))
    return [
        None if file is None else partial(read_scores, file, label, choose=system.choose)
        for file, label, system in zip(files, labels, systems, strict=True)
    ]


def find_groups(options: EvaluateOptions) -> Attribute | None:
    """Read the groups of speakers from their own file, or from the score files."""
    from monitor.lab.evaluation.input.groups import read_attribute

    name = options.group_by
    if options.groups is not None:
        return read_attribute(options.groups, name)
    if name is None:
        return None
    attribute: Attribute | None = None
    for score_file in filter(None, map(_score_file, options.scores)):
        groups = score_file.groups
        if groups is None or groups.name.lower() != name.lower():
            has = "no groups" if groups is None else groups.name
            raise UsageError(
                f"--group-by {name}: {score_file.path.name} has {has}. Use --groups FILE"
            )
        before = {} if attribute is None else attribute.of
        if any(before.get(k, v) != v for k, v in groups.of.items()):
            raise UsageError(f"--group-by {name}: {score_file.path.name} contradicts another file")
        attribute = replace(attribute or groups, of={**before, **groups.of})
    if attribute is None:
        raise UsageError("--group-by needs --groups, or SCORES from monitor score")
    return attribute


def _score_file(file: Path) -> ScoreFile | None:
    """Open a file of `monitor score`; None for any other file."""
    from monitor.lab.evaluation.input.files import kind_of
    from monitor.lab.evaluation.input.score_file import ScoreFile

    if not file.is_file() or not file.stat().st_size:
        return None
    return ScoreFile.from_file(file) if kind_of(file) == "npz" else None


def _input_files(options: EvaluateOptions) -> dict[Path, None]:
    return dict.fromkeys((
        *options.scores, *options.labels, *options.trials, *options.enrolment,
        *options.enrolment_labels, *options.dev, *options.dev_labels,
        *filter(None, (options.groups, options.cohort)), *options.forensic.conditions,
    ))  # fmt: skip


def _for_each(option: str, files: Sequence[Path], count: int) -> Sequence[Path | None]:
    if len(files) not in (0, 1, count):
        raise UsageError(f"{option}: give it once, or once for each of {count} systems")
    return list(files) * count if len(files) == 1 else list(files) or [None] * count


def _distinguish(files: Sequence[Path]) -> list[str]:
    """Return the stems of files, with their folders if two stems are equal."""
    stems = [file.stem for file in files]
    if len(set(stems)) == len(stems):
        return stems
    return [f"{file.parent.name}/{file.stem}" for file in files]


_text = partial(setting, default="", show_default=False)
_VOICE = click.Choice(("original", "anonymised"))


@dataclass(frozen=True, slots=True)
class ValidationOptions:
    """Options of a forensic validation."""

    validation: Path | None = option(
        "--validation FILE.html",
        "Write a forensic validation of likelihood ratios instead, with CSV and JSON beside it. "
        "It has Tippett, PAV, ECE and DET plots, Cllr and its parts, devPAV, ELUB and invariance "
        "bounds, and ENFSI's words within them. Results are split by length (--choose), "
        "--conditions and --groups.",
    )
    llr: str | None = option(
        "--llr",
        "SCORES are log-likelihood ratios to this base. [default: they are calibrated on --dev or "
        "across speakers, as the report notes]",
        type=click.Choice(("e", "2", "10")),
    )
    h1: str = _text("h1 TEXT", "Proposition 1, in words.")
    h2: str = _text("h2 TEXT", "Proposition 2, in words.")
    relevant_population: str = _text(
        "relevant-population TEXT", "Population of the propositions, in words."
    )
    case: str = _text(
        "case TEXT", "Conditions of the case, in words, such as recordings, channels and lengths."
    )
    criteria: tuple[str, ...] = option(
        "--criteria",
        "Acceptance criteria, such as cllr<=0.3,devpav<=0.1. The document marks those met. "
        "Measures are cllr, min_cllr, cllr_cal, eer, devpav, elub_high and others of the CSV.",
        type=Names(),
        default=(),
        show_default=False,
    )
    conditions: tuple[Path, ...] = option(
        "--conditions FILE",
        "Condition of each trial, one trial and condition per line, or a table of several. "
        "Seconds are grouped into ranges. Give it once for all systems, or once for each.",
    )


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """Options of the command."""

    scores: tuple[Path, ...] = argument("[SCORES]...", nargs=-1)
    labels: tuple[Path, ...] = option(
        "--labels FILE",
        "True speaker of each trial, as a column or one name per trial, or a trial list. Give it "
        "once for all systems, or once for each. [default: from the scores]",
    )
    trials: tuple[Path, ...] = option(
        "--trials FILE", "Embeddings of the trials instead of SCORES, scored by cosine."
    )
    enrolment: tuple[Path, ...] = option(
        "--enrolment FILE", "Enrolment embeddings, once for all systems or once for each."
    )
    scoring: str = option(
        "--scoring",
        "How to score several enrolments of a speaker, by their mean (of embeddings or scores) or "
        "the nearest.",
        type=click.Choice(("average", "max")),
        default="average",
    )
    normalise: str | None = setting(
        "normalise",
        "Score embeddings relative to the cohort: z-norm, t-norm, s-norm or adaptive s-norm.",
        type=click.Choice(("z", "t", "s", "as")),
    )
    cohort: Path | None = setting("cohort FILE", "Embeddings of other people, for normalise.")
    enrolment_labels: tuple[Path, ...] = option(
        "--enrolment-labels FILE",
        "Speaker of each enrolment in SCORES if speakers have several, one enrolment and speaker "
        "per line.",
    )
    dev: tuple[Path, ...] = option(
        "--dev FILE",
        "Scores of other speakers to calibrate LID on, one for all systems or one each. "
        "[default: cross-fitted over the speakers of SCORES]",
    )
    dev_labels: tuple[Path, ...] = option("--dev-labels FILE", "The --labels of --dev.")
    names: tuple[tuple[str, ...], ...] = option(
        "--names",
        "Names of the systems, in order. [default: their file names]",
        type=Names(),
        multiple=True,
    )
    groups: Path | None = option(
        "--groups FILE",
        "Group of each speaker (Kaldi's spk2gender, or a table). Each group's trials are compared "
        "with its own enrolled speakers, and averaged as in VoicePrivacy.",
    )
    group_by: str | None = option(
        "--group-by COLUMN",
        "Column of the --groups table. Without --groups, the groups in SCORES of `monitor score`, "
        "such as gender.",
    )
    choose: tuple[str, ...] | None = option(
        "--choose",
        "Matrices of `monitor score` to use, by feature, same or cross, T=10, D=30. For "
        "VoicePrivacy folders, by libri_dev, f, aa and so on. Words of one kind are alternatives. "
        "[default: all, side by side]",
        type=Names(),
    )
    data: Path | None = option(
        "--data FOLDER",
        "Folder of SET_trials_f/trials and the other lists, for VoicePrivacy folders. [default: "
        "data/ beside exp/]",
    )
    clear_results: Path | None = setting(
        "clear-results FOLDER",
        "VoicePrivacy results of a network trained on clear speech. An attacker with less than "
        "0.9 of its bits on clear speech is marked undertrained. [default: asv_orig or asv_ssl "
        "beside]",
    )
    query: str | None = setting(
        "query", "Whether trials are original or anonymised. Needs reference.", type=_VOICE
    )
    reference: str | None = setting(
        "reference", "Whether enrolments are original or anonymised. Needs query.", type=_VOICE
    )
    unmated: str = setting(
        "unmated",
        "How to treat trials of impostors. EER and other figures without ranks count them, unless "
        "they are dropped or refused.",
        type=click.Choice(("count", "drop", "refuse")),
        default="count",
    )
    ties: str = setting(
        "ties",
        "Rank of a speaker with a tied score: all tied ranks, the first, the last or the middle "
        "one.",
        type=click.Choice(("spread", "optimistic", "pessimistic", "mid")),
        default="spread",
    )
    epsilon: float | None = option(
        "--epsilon NATS",
        "Epsilon that the anonymiser declares for one trial. Adds the accounting over several.",
        minimum=0,
    )
    delta: float = setting(
        "delta",
        "Probability that the accounting of --epsilon fails.",
        type=FiniteRange(0, 1, min_open=True, max_open=True),
        default=1e-4,
    )
    among: tuple[int, ...] = option(
        "--among",
        "Estimate IdR and MeanD in crowds of these sizes, such as 1e4,1e6. Four extrapolations "
        "are shown with intervals, their range, and whether the enrolled support it.",
        type=CrowdSizes(),
        default=(),
        show_default=False,
    )
    replicates: int = option(
        "--replicates",
        "Resamples of speakers for the confidence intervals. 0 gives none, at once.",
        minimum=0,
        maximum=MOST_REPLICATES,
        default=200,
    )
    seed: int = setting("seed", "Seed of the resamples.", minimum=0, default=0)
    figures: tuple[str, ...] | None = option(
        "--figures",
        "Figures to show, as all or by name, such as eer,d_ece,idr. `help` explains them. "
        "`bibtex` prints their papers, one entry per line. "
        "[default: the most important, all in JSON]",
        type=Names(),
    )
    pairs: bool = option(
        "--pairs",
        "Also compare all pairs of systems, with intervals and p-values corrected for their "
        "number.",
    )
    voiceprivacy: bool = option(
        "--voiceprivacy",
        "Print only the EERs of VoicePrivacy folders, in the format of the challenge's results. "
        "Lists of both genders are also split into f, m and cross-gender pairs.",
    )
    as_json: bool = option("--json", "Print everything as JSON.")
    csv_to: Path | str | None = option(
        "--csv",
        "Write all figures to a new CSV file, one per line, or print them if no name is given. "
        "With --pairs, write the differences.",
        type=TextFile(".csv"),
    )
    latex_to: Path | str | None = option(
        "--latex",
        "Write a LaTeX table (booktabs) to a new file, or print it if no name is given.",
        type=TextFile(".tex"),
    )
    html: Path | None = option(
        "--html FILE.html",
        "Write one self-contained page with pictures, all figures and explanations.",
    )
    forensic: ValidationOptions = group(ValidationOptions, "Options")

    @property
    def every(self) -> bool:
        """Return whether all figures are shown."""
        return self.figures == ("all",)


_OF_FIGURES = {
    "among": "--among", "as_json": "--json", "csv_to": "--csv", "epsilon": "--epsilon",
    "figures": "--figures", "html": "--html", "latex_to": "--latex",
    "pairs": "--pairs", "query": "query", "reference": "reference",
}  # fmt: skip
"""Options that affect only the papers' metrics."""


def write_validation(options: EvaluateOptions, path: Path) -> None:
    """Write the validation of all systems, and print the main measures."""
    import hashlib

    from monitor.lab.evaluation.input.groups import read_conditions
    from monitor.lab.evaluation.validation import Criterion, ValidationStatement, validate
    from monitor.lab.evaluation.validation_document import save_validation, validation_summary
    from monitor.lab.report.renderers import get_figure_paths, print_document

    forensic, files = options.forensic, _input_files(options)
    for name, option_name in _OF_FIGURES.items():
        if getattr(options, name):
            raise UsageError(
                f"--validation makes a document of its own, CSV and JSON beside it: leave out "
                f"{option_name}"
            )
    statement = ValidationStatement(
        forensic.h1.strip(), forensic.h2.strip(), forensic.relevant_population.strip(),
        forensic.case.strip(), tuple(map(Criterion.parse, forensic.criteria)),
    )  # fmt: skip
    systems = list_systems(options)
    conditions = _for_each("--conditions", forensic.conditions, len(systems))
    groups = find_groups(options)
    outputs = (path, *get_figure_paths(path))
    if not path.exists():
        for output in outputs:
            check_new(output, "--validation writes beside it:")
    _check_html("--validation", outputs, files)
    validations = []
    with progress_over(len(systems), "validating") as step:
        for system, table in zip(systems, conditions, strict=True):
            scores, dev, notes = system.load()
            step(system.name, 1)
            validation = validate(
                scores.comparisons,
                None if dev is None else dev.comparisons,
                llr=forensic.llr,
                conditions=() if table is None else read_conditions(table),
                groups=groups,
                replicates=options.replicates,
                seed=options.seed,
                notes=(*scores.warnings, *notes),
            )
            facts = {  # values by which the system was chosen
                sort: word.removeprefix(f"{sort}=") + " s" * (sort in ("T", "D"))
                for sort, word in zip(("feature", "session", "T", "D"), system.choose, strict=False)
            }
            validations.append(replace(validation, facts=facts))
    digests = {}
    for file in filter(Path.is_file, files):
        with file.open("rb") as content:
            digests[str(file)] = hashlib.file_digest(content, "sha256").hexdigest()
    csv, json = save_validation(validations, path, statement, digests)
    print_document(validation_summary(validations, statement), made_console(_WIDE))
    say(f"the document is {path}, its figures are in {csv.name} and {json.name}")


def _check_html(option_name: str, outputs: Sequence[Path], files: Iterable[Path]) -> None:
    """Refuse outputs that do not end in .html, cannot be written, or are inputs."""
    from monitor.sinks.jsonl import refuse_overwrite

    if outputs[0].suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{option_name} {outputs[0].name}: let the name end in .html")
    for output in outputs:
        check_output(output)
        refuse_overwrite(output, [str(file) for file in files])


@click.command("evaluate", cls=WithTextFiles, short_help="Compute privacy metrics from scores.")
@with_options(EvaluateOptions)
def command(options: EvaluateOptions) -> int:
    """Measure how much SCORES of trials x speakers disclose.

    \b
    monitor evaluate scores.npz --choose voice,T=10             from monitor score
    monitor evaluate scores.npy --labels speakers.txt --dev d.npy --dev-labels d.txt

    \b
    monitor evaluate kaldi_scores --labels kaldi_trials --html report.html --latex table.tex
    monitor evaluate a.npy b.npy --labels speakers.txt --names before,after

    \b
    monitor evaluate exp/asv_anon_mcadams --choose aa           VoicePrivacy 2024, 2026
    monitor evaluate --trials anonymised.npz --enrolment original.npz --scoring max
    monitor evaluate scores.npz --validation voice.html --criteria "cllr<=0.3"

    Higher SCORES must mean more alike. They are .npy (a matrix, or records of trial, speaker and
    score), .npz, CSV, TSV, or Kaldi scores with their trial list. Score and key files as in
    VoicePrivacy and ZEBRA also work, and result folders of the VoicePrivacy Challenges 2024 and
    2026 (exp/asv_anon_X). The format is detected. A .npy matrix may exceed the memory. A list may
    not.

    Figures cover similarity rank disclosure, local information disclosure, ZEBRA, verification,
    linkage, ranks as anonymity, and true positives at low false positive rates. Each has a 95 %
    interval over resampled speakers (or the reason for its absence), its maximum, and a warning if
    it misleads. The most important figures are shown by default, and all with --figures all.
    Several systems are compared with the first, or all with each other (--pairs). Systems with the
    same speakers are resampled together. --validation writes a document for forensic examiners.
    """
    from monitor.lab.evaluation.among import keys
    from monitor.lab.evaluation.citations import format_bibtex
    from monitor.lab.evaluation.document import Evaluation
    from monitor.lab.evaluation.report import choose_figures, list_catalogue, main_figures
    from monitor.lab.evaluation.systems import all_pairs
    from monitor.lab.evaluation.voiceprivacy import format_results
    from monitor.lab.report.model import Table
    from monitor.lab.report.renderers import print_table

    alone = {"help", "bibtex"} & set(options.figures or ())
    if alone and len(options.figures or ()) > 1:
        raise UsageError(f"--figures {min(alone)} prints no figures: leave out the other names")
    if options.figures == ("help",):
        print_table(Table.from_numbers(("", ""), list_catalogue(), names=2), made_console(_WIDE))
        return 0
    if options.figures == ("bibtex",):
        click.echo(format_bibtex(), nl=False)
        return 0
    if options.forensic.validation is not None:
        write_validation(options, options.forensic.validation)
        return 0
    _check_options(options)
    names = None if options.every else options.figures
    shown = None if names is None else choose_figures(names, keys(options.among))
    systems = list_systems(options)
    if options.voiceprivacy:
        chosen = [(s.results, s.entry) for s in systems if s.results and s.entry]
        if len(chosen) < len(systems):
            raise UsageError("--voiceprivacy needs VoicePrivacy's folders of results as SCORES")
        click.echo(format_results(chosen), nl=False)
        for results in dict.fromkeys(results for results, _ in chosen):
            entries = [entry for source, entry in chosen if source is results]
            say(*(f"monitor: warning: {line}" for line in results.find_lost_numbers(entries)))
        return 0
    if options.pairs and len(systems) < 2:
        raise UsageError("--pairs needs several systems")
    attribute = find_groups(options)
    if options.html is not None:
        _check_html("--html", [options.html], _input_files(options))
    reports, parts = _measure(options, systems, attribute)
    everything = options.as_json or options.csv_to == "-" or options.every
    within = shown if everything else shown or main_figures()
    pairs = all_pairs(reports, within) if options.pairs or options.as_json else ()
    _write(options, Evaluation(reports, parts, pairs), shown)
    return 0


def _check_options(options: EvaluateOptions) -> None:
    if any(getattr(options.forensic, entry.name) for entry in fields(options.forensic)):
        raise UsageError("--llr, --criteria, --conditions, h1, h2, relevant-population and case "
                         "need --validation FILE.html")  # fmt: skip
    if options.as_json + (options.csv_to == "-") + (options.latex_to == "-") > 1:
        raise UsageError(
            "only one of --json, --csv and --latex can go to standard output: give "
            "the others a file"
        )
    for name, path in (("--csv", options.csv_to), ("--latex", options.latex_to)):
        if path is not None and path != "-":
            check_new(Path(path), name)
    others = ("as_json", "csv_to", "latex_to", "html", "figures", "pairs", "group_by", "groups")
    if options.voiceprivacy and any(getattr(options, name) for name in others):
        raise UsageError("--voiceprivacy prints a table of its own: leave out other figures")
    if not options.among and any(name.startswith("among") for name in options.figures or ()):
        raise UsageError("--figures among needs --among, such as --among 1e4,1e6")
    if (options.query is None) != (options.reference is None):
        raise UsageError("query and reference go together: each is original or anonymised")


def _measure(
    options: EvaluateOptions, systems: Sequence[System], attribute: Attribute | None
) -> tuple[list[Report], list[Grouped]]:
    from monitor.lab.evaluation.comparisons import Roles
    from monitor.lab.evaluation.evaluating import evaluate, steps
    from monitor.lab.evaluation.family import EvaluationSettings
    from monitor.lab.evaluation.systems import by_group

    roles = Roles(options.query, options.reference) if options.query and options.reference else None
    settings = EvaluationSettings(
        options.replicates, options.seed, options.ties, None, options.epsilon, options.delta,
        options.among,
    )  # fmt: skip
    reports, parts = [], []
    with progress_over(len(systems) * (steps() + 1), "evaluating") as step:
        for system in systems:
            scores, dev_scores, notes = system.load()
            step(system.name, 1)
            dev = None if dev_scores is None else dev_scores.matrix
            with_roles = replace(settings, roles=roles or system.roles)
            measure = partial(evaluate, dev=dev, settings=with_roles)
            report = measure(scores.comparisons, notes=notes, progress=lambda name: step(name, 1))
            reports.append(replace(report, warnings=(*report.warnings, *scores.warnings)))
            if attribute is not None:
                parts.append(by_group(scores.comparisons, attribute.of, measure, attribute.label))
    return reports, parts


def _write(options: EvaluateOptions, evaluation: Evaluation, shown: Sequence[str] | None) -> None:
    """Write the requested files; print JSON, CSV, LaTeX or tables to stdout."""
    from monitor.files import write_text
    from monitor.lab.evaluation.document import pairs_csv
    from monitor.lab.evaluation.systems import all_pairs
    from monitor.lab.report.renderers import print_document, render_html

    printed = ""
    if options.as_json:
        printed = evaluation.json(shown) + "\n"
    if options.html is not None:
        write_text(render_html(evaluation.page()), options.html)
        say(f"the page is {options.html}")
    for path, name in ((options.csv_to, "figures are"), (options.latex_to, "table is")):
        if path is None:
            continue
        if path == options.latex_to:
            keys = tuple(evaluation.reports[0].figures) if options.every else shown
            text = evaluation.latex(keys)
        elif options.pairs:
            text = pairs_csv(all_pairs(evaluation.reports, shown))
        else:
            text = evaluation.csv(shown)
        if path == "-":
            printed = text
        else:
            write_text(text, Path(path))
            say(f"the {name} in {path}")
    if printed:
        click.echo(printed, nl=False)
    else:
        print_document(evaluation.summary(shown, options.every), made_console(_WIDE))
