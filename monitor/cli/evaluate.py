"""monitor evaluate: every metric of the papers on one score matrix, or on several side by side."""

from __future__ import annotations

from pathlib import Path

import click

from monitor.cli.options import (
    MOST_REPLICATES,
    Names,
    People,
    TextFile,
    WithTextFiles,
    check_new,
    check_output,
)
from monitor.cli.saying import say

__all__ = ["command"]

_FILE = click.Path(path_type=Path)
_VOICE = click.Choice(("original", "anonymised"))


@click.command(
    "evaluate",
    cls=WithTextFiles,
    short_help="Every metric of the papers on a matrix of scores.",
)
@click.argument("scores", type=_FILE, nargs=-1, metavar="[SCORES]...")
@click.option(
    "--labels",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="Who really spoke: a column or name a trial, or a trial list. Once for all systems, or "
    "once for each. [default: what the scores say themselves]",
)
@click.option(
    "--trials",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="Instead of SCORES: embeddings of the trials, to be scored here by cosine.",
)
@click.option(
    "--enrolment",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="The embeddings that they are compared with; once for all systems, or once for each.",
)
@click.option(
    "--scoring",
    type=click.Choice(("average", "max")),
    default="average",
    show_default=True,
    help="Several enrolments of a speaker: their mean (of embeddings, or of scores), or the "
    "nearest of them.",
)
@click.option(
    "--enrolment-labels",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="Whose the enrolments in SCORES are, where speakers have several: an enrolment and its "
    "speaker a line.",
)
@click.option(
    "--dev",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="Scores of other speakers, as many or not, to calibrate LID on; once for all systems, or "
    "once for each. "
    "[default: cross-fitted over the speakers of SCORES, and said so]",
)
@click.option(
    "--dev-labels", type=_FILE, multiple=True, metavar="FILE", help="As --labels, of --dev."
)
@click.option(
    "--names",
    type=Names(),
    multiple=True,
    help="What the systems are called, in order. [default: the names of their files]",
)
@click.option(
    "--groups",
    type=_FILE,
    metavar="FILE",
    help="A group of each speaker (Kaldi's spk2gender, or a table): each group by itself, its "
    "trials against its own enrolled speakers, and the average, as VoicePrivacy reports.",
)
@click.option(
    "--group-by",
    metavar="COLUMN",
    help="Of a table with several, the column of --groups; without --groups, what `monitor score` "
    "has put into SCORES, such as gender.",
)
@click.option(
    "--choose",
    type=Names(),
    help="Of SCORES from `monitor score`, which: features, same or cross, T=10, D=30; words of one "
    "sort are alternatives. [default: all, side by side]",
)
@click.option("--query", type=_VOICE, help="What the trials are; needs --reference.")
@click.option("--reference", type=_VOICE, help="What they are compared with; needs --query.")
@click.option(
    "--unmated",
    type=click.Choice(("count", "drop", "refuse")),
    default="count",
    show_default=True,
    help="Impostor trials, whose speaker is not enrolled: EER and others that need no ranks count "
    "them; or they are dropped, or refused.",
)
@click.option(
    "--ties",
    type=click.Choice(("spread", "optimistic", "pessimistic", "mid")),
    default="spread",
    show_default=True,
    help="The rank of a speaker whose score others share: all of the shared ranks, the first, the "
    "last or the middle one.",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(min=0),
    metavar="NATS",
    help="What the anonymiser declares for one trial: adds the accounting over several.",
)
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=1e-4,
    show_default=True,
    help="Chance with which such a bound may fail.",
)
@click.option(
    "--among",
    type=People(),
    default=(),
    help="Say IdR and MeanD among so many people, such as 1e4,1e6: by four forms that rates may "
    "follow, each with limits, the bracket over them, and whether so few enrolled support it.",
)
@click.option(
    "--replicates",
    default=200,
    show_default=True,
    type=click.IntRange(0, MOST_REPLICATES),
    help="Resamples of speakers behind the limits; 0 for none, at once.",
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the resamples."
)
@click.option("--all", "every", is_flag=True, help="Print all figures, not only a dozen.")
@click.option(
    "--figures",
    type=Names(),
    help="Which figures, by name: eer,d_ece,idr ...; `--figures help` lists all with what they "
    "say. [default: a dozen; JSON has all]",
)
@click.option(
    "--pairs",
    is_flag=True,
    help="Also the differences of all pairs of systems, with limits and p-values that bear the "
    "number of pairs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead.")
@click.option(
    "--csv",
    "csv_to",
    type=TextFile(".csv"),
    help="Write all figures to a new file as CSV, one a line, without a name print them instead; "
    "with --pairs the differences.",
)
@click.option(
    "--latex",
    "latex_to",
    type=TextFile(".tex"),
    help="Write a LaTeX table (booktabs) to a new file, or without a name print it instead.",
)
@click.option(
    "--html",
    type=_FILE,
    metavar="FILE.html",
    help="Write one page with pictures, all figures and what they mean; it needs nothing else.",
)
def command(
    scores: tuple[Path, ...],
    labels: tuple[Path, ...],
    trials: tuple[Path, ...],
    enrolment: tuple[Path, ...],
    scoring: str,
    enrolment_labels: tuple[Path, ...],
    dev: tuple[Path, ...],
    dev_labels: tuple[Path, ...],
    names: tuple[tuple[str, ...], ...],
    groups: Path | None,
    group_by: str | None,
    choose: tuple[str, ...] | None,
    query: str | None,
    reference: str | None,
    unmated: str,
    ties: str,
    epsilon: float | None,
    delta: float,
    among: tuple[int, ...],
    replicates: int,
    seed: int,
    every: bool,
    figures: tuple[str, ...] | None,
    pairs: bool,
    as_json: bool,
    csv_to: Path | str | None,
    latex_to: Path | str | None,
    html: Path | None,
) -> int:
    """Measure what SCORES disclose: trials x speakers, higher is more alike.

    \b
    monitor evaluate scores.npz --choose voice,T=10             of `monitor score`
    monitor evaluate scores.npy --labels speakers.txt
    monitor evaluate scores.npy --labels speakers.txt --dev d.npy --dev-labels d.txt
    monitor evaluate kaldi_scores --labels kaldi_trials --html report.html --latex table.tex
    monitor evaluate scores.npy --labels speakers.txt --among 1e4,1e6
    monitor evaluate --trials anonymised.npz --enrolment original.npz --scoring max
    monitor evaluate a.npy b.npy c.npy --labels speakers.txt --names before,McAdams,ours

    SCORES are .npy (as large as the disk), .npz, CSV or TSV, Kaldi scores with their trial list, or
    a score and key file as of VoicePrivacy and ZEBRA. What they are is seen in the files.

    Similarity rank disclosure, local information disclosure, ZEBRA, verification, linkage, ranks as
    anonymity and true positives at few false ones: each with 95 % limits over resampled speakers
    (or why there are none), the most it could be, and a warning where it misleads. The dozen
    figures that matter come first, --all has the others. Of several systems each is compared with
    the first, or all with each other (--pairs); on the same speakers they are resampled together.
    """
    import json
    from functools import partial

    from monitor.cli.evaluated import (
        print_catalogue,
        print_comparison,
        print_groups,
        print_pairs,
        print_report,
    )
    from monitor.cli.progress import progress_over
    from monitor.cli.systems import dev_of, groups_within, listed, systems_of
    from monitor.documents.shell import save_document
    from monitor.errors import UsageError
    from monitor.evaluation.among.figures import keys
    from monitor.evaluation.evaluating import evaluate, steps
    from monitor.evaluation.input.attributes import read_attribute
    from monitor.evaluation.report.catalogue import chosen, main_figures
    from monitor.evaluation.report.comparing import compare
    from monitor.evaluation.report.exporting import figures_csv, latex_table, pairs_csv
    from monitor.evaluation.report.grouping import by_group
    from monitor.evaluation.report.pairwise import all_pairs
    from monitor.evaluation.scores.roles import Roles
    from monitor.sinks.standing import spare

    if figures == ("help",):
        print_catalogue()
        return 0
    if figures is not None and every:
        raise UsageError("--figures chooses, --all shows all: give one of them")
    as_csv, as_latex = csv_to == "-", latex_to == "-"
    if as_json + as_csv + as_latex > 1:
        raise UsageError("--json, --csv and --latex: give one of them, or files to the others")
    csv_file, latex_file = (None if to == "-" else to for to in (csv_to, latex_to))
    for option, path in (("--csv", csv_file), ("--latex", latex_file)):
        if path is not None:
            check_new(Path(path), option)
    if figures is not None and not among and any(name.startswith("among") for name in figures):
        raise UsageError("--figures among ... goes with --among, such as --among 1e4,1e6")
    shown = None if figures is None else chosen(figures, keys(among))
    named = listed(scores, choose)
    if pairs and len(named or trials) < 2:
        raise UsageError("--pairs: give several systems")
    within_scores = None
    if group_by is not None and groups is None:
        within_scores = groups_within(scores, group_by)
    beside = () if groups is None else (groups,)
    files = (*scores, *labels, *trials, *enrolment, *enrolment_labels, *dev, *dev_labels, *beside)
    if html is not None:
        if html.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"--html {html.name}: let the name end in .html")
        check_output(html)
        spare(html, [str(file) for file in files])
    if (query is None) != (reference is None):
        raise UsageError("--query and --reference go together: each is original or anonymised")
    roles = Roles(query, reference) if query and reference else None
    called = tuple(name for group in names for name in group)
    systems = systems_of(
        named, labels, trials, enrolment, enrolment_labels, scoring, called, unmated
    )
    others = dev_of([each.choose for each in named] or [()] * len(systems), dev, dev_labels)
    attribute = within_scores if groups is None else read_attribute(groups, group_by)
    reports, parts = [], []
    with progress_over(len(systems) * (steps() + 1), "evaluating") as step:
        for read, read_dev in zip(systems, others, strict=True):
            system = read()
            tuning = None if read_dev is None else read_dev()
            step(system.comparisons.name, 1)
            measure = partial(
                evaluate,
                dev=None if tuning is None else tuning.matrix,
                replicates=replicates,
                seed=seed,
                ties=ties,
                roles=roles,
                epsilon=epsilon,
                delta=delta,
                among=among,
            )
            notes = (*system.notes, *(() if tuning is None else tuning.notes))
            reports.append(
                measure(system.comparisons, notes=notes, progress=lambda label: step(label, 1))
            )
            if attribute is not None:
                parts.append(by_group(system.comparisons, attribute.of, measure, attribute.label))
    comparison = compare(reports) if len(reports) > 1 else None
    within = shown if as_json or as_csv or every else shown or main_figures()
    couples = all_pairs(reports, within) if pairs or (as_json and len(reports) > 1) else ()
    if html is not None:
        from monitor.evaluation.report.page import save_page

        save_page(reports, html, comparison, parts, couples if pairs else ())
        say(f"the page is {html}")
    rows = tuple(reports[0].figures) if every else shown

    def table() -> str:
        every_pair = couples if as_csv or not pairs else all_pairs(reports, shown)
        return pairs_csv(every_pair) if pairs else figures_csv(reports, parts, shown)

    if csv_file is not None:
        save_document(table(), Path(csv_file))
        say(f"the figures are in {csv_file}")
    if latex_file is not None:
        save_document(latex_table(reports, comparison, parts, rows), Path(latex_file))
        say(f"the table is in {latex_file}")
    if as_json:
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
            print_report(reports[0], shown, every)
        else:
            print_comparison(comparison, shown, every)
        print_pairs(couples, reports)
        print_groups(parts, shown, every)
    return 0
