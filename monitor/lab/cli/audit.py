"""monitor audit: one document of what recordings disclose of the people who speak in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    MOST_REPLICATES,
    CrowdSizes,
    Features,
    JobOptions,
    Names,
    NumberOfBits,
    Numbers,
    argument,
    check_outputs,
    feature_setup,
    group,
    option,
    say,
    with_options,
)
from monitor.cli.transcript_options import CorpusOptions

if TYPE_CHECKING:
    from monitor.lab.audit.audit import Audit, AuditConfig


@dataclass(frozen=True, slots=True)
class CorpusAuditOptions:
    """Options of the comparison within a corpus."""

    features: tuple[str, ...] | None = option(
        "--features",
        "By what attackers recognise a voice. [default: all that is ready]",
        type=Features(),
    )
    hearing: CorpusOptions = group(CorpusOptions, "Corpus")
    lengths: tuple[float, ...] | None = option(
        "--lengths",
        "Lengths of speech that are looked at, speech seconds. [default: 1, 2, 3, 5, 10, 20, 30, "
        "60 and 120, without those too short for an embedding]",
        type=Numbers(),
    )
    template: float | None = option(
        "--template S",
        "Enrolled speech of each person, rounded down to 5 s. [default: 60, or what half of the "
        "people have]",
        least=5.0,
    )
    rank_model: Path | None = option(
        "--rank-model FILE",
        "What weighs features and says what scores are worth, from `monitor calibrate -o "
        "model.npz`. [default: the shipped rank models]",
    )
    attributes: tuple[str, ...] | None = option(
        "--attributes NAME[,NAME]",
        "What else a voice may tell: columns of manifest.csv, or two groups of numbers, such as "
        "'age<16'. [default: gender, accent and age, where they stand there]",
        type=Names(),
    )
    groups: Path | None = option(
        "--groups FILE", "The table that says them. [default: manifest.csv of CORPUS]"
    )
    among: tuple[int, ...] | None = option(
        "--among M", "The crowd that people are singled out of. [default: 1e6]", type=CrowdSizes()
    )
    replicates: int = option(
        "--replicates N",
        "Resamples of speakers behind the limits.",
        least=20,
        most=MOST_REPLICATES,
        default=200,
    )
    seed: int = option("--seed N", "Of the resamples.", least=0, default=0)
    workers: JobOptions = group(JobOptions, "Processes")

    def check(self) -> None:
        """Refuse what makes no sense, before anything is looked for."""
        from monitor.errors import UsageError

        if self.among is not None and len(self.among) != 1:
            raise UsageError("--among: name one crowd, such as 1e6")

    def config(self, budget: float, files: list[Path]) -> AuditConfig:
        """Return the library's settings."""
        from monitor.lab.audit.audit import AuditConfig

        usual = AuditConfig()
        return AuditConfig(
            budget, self.among[0] if self.among else usual.among, self.lengths or usual.lengths,
            self.template, self.features, self.attributes, self.groups, self.rank_model,
            self.replicates, self.seed, self.workers.for_recordings(files), feature_setup(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of the command."""

    sources: tuple[Path, ...] = argument("CORPUS|RUN.jsonl...|DIR", nargs=-1, required=True)
    output: Path | None = option(
        "-o, --output FILE.html|.md",
        "The document; FILE.csv and FILE.json are written beside it (mode 0600). Of --card the "
        "card, FILE.md, with FILE.json. [default: of --card standard output]",
    )
    card: bool = option(
        "--card", "Write a card for the page of a speech dataset instead: what its voices disclose."
    )
    budget: float = option(
        "--budget BITS", "How much the speech of one person may disclose.",
        type=NumberOfBits(), default="6",
    )  # fmt: skip
    salt: str = option(
        "--salt TEXT",
        "Goes into the hashes that stand for speakers: without it who has the list of speakers "
        "can find the most exposed.",
        default="",
    )
    replace: bool = option("--replace", "Overwrite the files if they exist.")
    how: CorpusAuditOptions = group(CorpusAuditOptions, "Options")


@click.command("audit", cls=HelpCommand, short_help="Report what recordings disclose.")
@with_options(AuditOptions)
def command(asked: AuditOptions) -> int:
    """Report what recordings disclose of the people who speak in them, as one document.

    \b
    monitor audit calls/ -o audit.html --budget 6    recordings by speaker (and session)
    monitor audit day1.jsonl day2.jsonl -o audit.html    of replay or listen, with --watch
    monitor audit tested -o audit.html               what monitor attack -o tested found
    monitor audit corpus/ --card -o card.md          a card that names nobody, to be published

    Singling out, linkability and inference (WP216) each have the figures that speak to them, with
    95 % intervals: evidence and first ranks, equal error rates and links across recordings, and
    attributes that attackers learn. Then how long speech of one person may be kept under a budget,
    who is most exposed (by hash), how the recordings sound, and what was not tested.

    The document gives no verdict: whether data are anonymous is a question of law, about all means
    reasonably likely to be used. A low figure bounds the attackers who were tried, and no others.

    The page needs no network and prints well. A card says what an attacker with a minute of speech
    learns, how unique a voice is in growing crowds, what the recordings tell besides the voice, and
    what was not tested; keep its --salt to yourself. A broken file is named and skipped (exit
    status 4).
    """
    from monitor.documents import get_figure_paths
    from monitor.errors import UsageError
    from monitor.lab.audit.audit import summarise
    from monitor.lab.audit.document import TITLES, save_audit
    from monitor.run import INCOMPLETE

    if asked.card:
        return _write_card(asked)
    output = asked.output
    if output is None:
        raise UsageError("an audit is a file: -o FILE.html")
    if output.suffix.lower() != ".html":
        raise UsageError(f"-o {output.name}: let the name end in .html")
    check_outputs([output, *get_figure_paths(output)], replace=asked.replace)
    audit = _audit(asked)
    paths = save_audit(audit, output, asked.salt)
    for area, lines in summarise(audit).items():
        say(TITLES[area], err=False)
        for line in lines:
            say(f"  {line}", err=False)
    for problem in audit.problems:
        say(f"monitor: note: {problem}")
    say(f"{output} is the report; {paths[0].name} and {paths[1].name} hold its figures")
    return INCOMPLETE if audit.kind == "corpus" and audit.skipped else 0


def _write_card(asked: AuditOptions) -> int:
    """Write the card of a corpus; the exit status."""
    from monitor.errors import UsageError
    from monitor.lab.audit.document import label_markdown, make_label, save_label
    from monitor.run import INCOMPLETE

    if len(asked.sources) > 1:
        raise UsageError("--card is of one corpus: give its folder, or its manifest")
    if asked.output is not None:
        if asked.output.suffix.lower() != ".md":
            raise UsageError(f"-o {asked.output.name}: let the name of a card end in .md")
        files = [asked.output, asked.output.with_suffix(".json")]
        check_outputs(files, replace=asked.replace)
    audit = _audit_folder(asked.sources[0], asked.how, asked.budget)
    label = make_label(audit, asked.salt)
    for problem in audit.problems:
        say(f"monitor: note: {problem}")
    if asked.output is None:
        click.echo(label_markdown(label), nl=False)
    else:
        json_path = save_label(label, asked.output)
        say(f"{asked.output} is the card; {json_path.name} holds its figures")
    return INCOMPLETE if audit.skipped else 0


def _audit(asked: AuditOptions) -> Audit:
    """Audit a corpus, runs or an attack."""
    from monitor.errors import UsageError
    from monitor.events.schema import read_run
    from monitor.lab.attacks.results import read_results
    from monitor.lab.audit.auditing import audit_attack, audit_runs

    asked.how.check()
    runs = [
        source_path
        for source_path in asked.sources
        if source_path.suffix.lower() in (".jsonl", ".ndjson")
    ]
    if runs:
        if len(runs) < len(asked.sources):
            raise UsageError("runs (RUN.jsonl) go without a corpus or the folder of an attack")
        config = asked.how.config(asked.budget, [])
        return audit_runs(
            [(source_path.name, read_run(source_path)) for source_path in runs], config
        )
    if len(asked.sources) > 1:
        raise UsageError(
            f"{len(asked.sources)} sources: give one corpus, or one folder of an attack, or runs"
        )
    (source,) = asked.sources
    if source.name == "results.json" or (source / "results.json").is_file():
        return audit_attack(read_results(source), asked.how.config(asked.budget, []))
    return _audit_folder(source, asked.how, asked.budget)


def _audit_folder(source: Path, how: CorpusAuditOptions, budget: float) -> Audit:
    """Audit a corpus, with progress."""
    from monitor.cli.inputs import load_speaker_model, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus import find
    from monitor.lab.audit.auditing import audit_corpus, extract_corpus

    how.check()
    place = how.workers.path(source)
    recordings = how.hearing.of(find(place))
    files = [recording.path for recording in recordings.recordings]
    config = how.config(budget, files)
    for line in plan_of(recordings):
        say(line)
    load_speaker_model(config.features, files)
    with progress_over(len(files), "listening") as step:
        extracted = extract_corpus(
            recordings, place, config, lambda recording: step(recording.speaker, 1)
        )
    with progress_over(extracted.steps, "testing") as step:
        return audit_corpus(extracted, config, lambda what: step(what, 1))
